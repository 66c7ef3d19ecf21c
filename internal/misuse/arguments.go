// Package misuse calls the exported functions and methods of a package with
// arguments outside of their contract: nil and zero receivers, handles that were
// freed, nil pointers, interfaces and slices, numbers out of range. None may panic or
// hang. The surface is read from the package's source, so that a function or type
// that is added without an entry in the test fails it.
package misuse

import (
	"context"
	"math"
	"reflect"
	"time"
)

// argumentLists returns the argument lists of calls: all zero unless the receiver is usable, each
// argument out of range by itself, and all of them at once.
func (s *Surface) argumentLists(f reflect.Type, usable bool) (lists [][]reflect.Value) {
	n := f.NumIn()
	if f.IsVariadic() {
		n--
	}
	base := make([]reflect.Value, n)
	bad := make([][]reflect.Value, f.NumIn())
	most := 0
	for i := range f.NumIn() {
		if i < n {
			base[i] = zeroArgument(f.In(i))
		}
		bad[i] = s.outOfRange(f.In(i))
		most = max(most, len(bad[i]))
	}
	if !usable || f.NumIn() == 0 {
		lists = append(lists, base)
	}
	for i := range n {
		for _, v := range bad[i] {
			if usable && v.Kind() == reflect.Interface && v.IsNil() && f.In(i) == reflect.TypeFor[context.Context]() {
				continue // it may wait for ever
			}
			list := append([]reflect.Value(nil), base...)
			list[i] = v
			lists = append(lists, list)
		}
	}
	if f.IsVariadic() {
		for _, v := range s.outOfRange(f.In(n).Elem()) {
			lists = append(lists, append(append([]reflect.Value(nil), base...), v))
		}
	}
	for k := range most {
		list := make([]reflect.Value, n)
		for i := range list {
			list[i] = base[i]
			if len(bad[i]) > 0 {
				list[i] = bad[i][k%len(bad[i])]
			}
		}
		if n > 1 {
			lists = append(lists, list)
		}
	}
	return lists
}

// zeroArgument returns the zero value of a parameter, and a live context for a context.
func zeroArgument(t reflect.Type) reflect.Value {
	if t == reflect.TypeFor[context.Context]() {
		return reflect.ValueOf(context.Background())
	}
	return reflect.Zero(t)
}

// endedContext returns a canceled context.
func endedContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// outOfRange returns invalid values of a parameter.
func (s *Surface) outOfRange(t reflect.Type) (list []reflect.Value) {
	for _, v := range s.Values {
		if reflect.TypeOf(v) == t {
			list = append(list, reflect.ValueOf(v))
		}
	}
	if t == reflect.TypeFor[context.Context]() {
		list = append(list, reflect.ValueOf(endedContext()))
	}
	number := func(n int64) { list = append(list, reflect.ValueOf(n).Convert(t)) }
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if t == reflect.TypeFor[time.Duration]() {
			number(-7)
			break
		}
		bits := t.Bits() - 1
		for _, n := range []int64{-7, math.MinInt64 >> (63 - bits), math.MaxInt64 >> (63 - bits)} {
			number(n)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		number(-1)
	case reflect.Float32, reflect.Float64:
		list = append(list, reflect.ValueOf(math.NaN()).Convert(t))
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.Interface:
		list = append(list, reflect.Zero(t))
	case reflect.Slice:
		one := reflect.MakeSlice(t, 1, 1)
		list = append(list, reflect.Zero(t), one)
		for _, v := range s.outOfRange(t.Elem()) {
			if t.Elem().Kind() != reflect.Uint8 {
				many := reflect.MakeSlice(t, 1, 1)
				many.Index(0).Set(v)
				list = append(list, many)
			}
		}
	}
	return list
}
