// Package counters treats the numbers in a struct of statistics alike: it lists them by name and
// adds them up.
//
// The numbers are the fields of type uint64 and int. The name of a number is that of its field in
// snake case, or the field's tag "counter". Numbers of a struct within the struct, and of a
// map[string]uint64, have the name of that field before their own, "dropped_too_far"; those of an
// embedded struct do not. Fields of other types are ignored.
package counters

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// All returns an iterator over the names and values of the numbers in the struct s, in the order
// of its fields. A map is in the order of its keys.
func All(s any) iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) { yieldFields("", reflect.ValueOf(s), yield) }
}

// yieldFields yields the numbers in v and reports whether to continue.
func yieldFields(prefix string, v reflect.Value, yield func(string, uint64) bool) bool {
	for i := range v.NumField() {
		field, f := v.Type().Field(i), v.Field(i)
		name := prefix + field.Tag.Get("counter")
		if name == prefix {
			name += Snake(field.Name)
		}
		switch {
		case f.Kind() == reflect.Uint64:
			if !yield(name, f.Uint()) {
				return false
			}
		case f.Kind() == reflect.Int:
			if !yield(name, uint64(f.Int())) {
				return false
			}
		case f.Kind() == reflect.Struct && field.Anonymous:
			if !yieldFields(prefix, f, yield) {
				return false
			}
		case f.Kind() == reflect.Struct:
			if !yieldFields(name+"_", f, yield) {
				return false
			}
		case f.Kind() == reflect.Map:
			m := f.Interface().(map[string]uint64)
			for _, key := range slices.Sorted(maps.Keys(m)) {
				if !yield(name+"_"+key, m[key]) {
					return false
				}
			}
		}
	}
	return true
}

// Add adds every uint64 in the struct src, which may be in an embedded struct, to the field of the
// same name in the struct that sum points to. It panics if there is no such field.
func Add(sum, src any) { addFields(reflect.ValueOf(sum).Elem(), reflect.ValueOf(src)) }

func addFields(sum, src reflect.Value) {
	same := sum.Type() == src.Type()
	for i := range src.NumField() {
		field, f := src.Type().Field(i), src.Field(i)
		switch {
		case f.Kind() == reflect.Struct && field.Anonymous:
			addFields(sum, f)
		case f.Kind() == reflect.Uint64 && same:
			sum.Field(i).SetUint(sum.Field(i).Uint() + f.Uint())
		case f.Kind() == reflect.Uint64:
			to := sum.FieldByName(field.Name)
			if !to.IsValid() {
				panic(fmt.Sprintf("counters: add %v: %v has no field %s", src.Type(), sum.Type(), field.Name))
			}
			to.SetUint(to.Uint() + f.Uint())
		}
	}
}

// Set sets the fields of the struct that dst points to, all of type uint64, to values in their
// order. It panics if their numbers differ.
func Set(dst any, values []uint64) {
	to := reflect.ValueOf(dst).Elem()
	if to.NumField() != len(values) {
		panic(fmt.Sprintf("counters: set %v: %d fields, %d values", to.Type(), to.NumField(), len(values)))
	}
	for i, n := range values {
		to.Field(i).SetUint(n)
	}
}

// Snake converts a Go name such as SendRNRErr to send_rnr_err.
func Snake(name string) string {
	runes := []rune(name)
	var b strings.Builder
	for i, c := range runes {
		if i > 0 && unicode.IsUpper(c) &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
