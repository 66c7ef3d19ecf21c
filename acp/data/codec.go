package data

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"strconv"
	"strings"
	"unsafe"
)

// codec converts values to bytes and back: values of a fixed size to their memory, strings and []byte to
// their contents.
type codec[T any] struct {
	form   form
	size   int    // of each value in bytes, or anySize
	layout uint64 // hash of the type's memory layout
}

// form is the representation of values.
type form uint8

const (
	formFlat   form = iota // as in memory
	formString             // string
	formBytes              // []byte
)

// anySize is the size of strings and []byte.
const anySize = -1

// flatCodec returns the codec of a type whose values have a fixed size and no references.
func flatCodec[T any]() (c codec[T], err error) {
	t := reflect.TypeFor[T]()
	var words strings.Builder
	if !writeLayout(&words, t) {
		return c, fmt.Errorf("%w: type %v contains references", ErrFlat, t)
	}
	return codec[T]{size: int(t.Size()), layout: hashBytes([]byte(words.String()))}, nil
}

// anyCodec is flatCodec that also supports strings and []byte.
func anyCodec[T any]() (codec[T], error) {
	switch t := reflect.TypeFor[T](); {
	case t.Kind() == reflect.String:
		return codec[T]{formString, anySize, hashBytes([]byte("bytes"))}, nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return codec[T]{formBytes, anySize, hashBytes([]byte("bytes"))}, nil
	}
	return flatCodec[T]()
}

// keyCodec returns the codec of keys, which are compared by their bytes. So padding and floating-point
// numbers are not permitted.
func keyCodec[T any]() (c codec[T], err error) {
	if c, err = anyCodec[T](); err == nil && c.size != anySize && !isExact(reflect.TypeFor[T]()) {
		err = fmt.Errorf("%w: key type %v has padding or floating-point numbers, but keys are compared by their bytes", ErrFlat, reflect.TypeFor[T]())
	}
	return c, err
}

// writeLayout writes the memory layout of a type, and reports whether it is flat.
func writeLayout(w *strings.Builder, t reflect.Type) bool {
	switch k := t.Kind(); {
	case k == reflect.Array:
		fmt.Fprintf(w, "[%d]", t.Len())
		return writeLayout(w, t.Elem())
	case k == reflect.Struct:
		w.WriteByte('{')
		for i := range t.NumField() {
			w.WriteString(strconv.Itoa(int(t.Field(i).Offset)) + ":")
			if !writeLayout(w, t.Field(i).Type) {
				return false
			}
		}
		w.WriteString("}" + strconv.Itoa(int(t.Size())))
		return true
	case k == reflect.Int || k == reflect.Uint:
		w.WriteString(k.String() + strconv.Itoa(int(8*t.Size())))
		return true
	default:
		w.WriteString(k.String())
		return k >= reflect.Bool && k <= reflect.Complex128 && k != reflect.Uintptr
	}
}

// isExact reports whether values of a flat type are equal if and only if their bytes are.
func isExact(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return isExact(t.Elem())
	case reflect.Struct:
		used := uintptr(0)
		for i := range t.NumField() {
			if !isExact(t.Field(i).Type) {
				return false
			}
			used += t.Field(i).Type.Size()
		}
		return used == t.Size()
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	default:
		return true
	}
}

// bytesOf returns the bytes of a value, without a copy.
func (c codec[T]) bytesOf(v *T) []byte {
	switch c.form {
	case formString:
		s := *(*string)(unsafe.Pointer(v))
		return unsafe.Slice(unsafe.StringData(s), len(s))
	case formBytes:
		return *(*[]byte)(unsafe.Pointer(v))
	default:
		return unsafe.Slice((*byte)(unsafe.Pointer(v)), c.size)
	}
}

// decodeValue returns the value of b, whose length is that returned by bytesOf.
func (c codec[T]) decodeValue(b []byte) (v T) {
	switch c.form {
	case formString:
		*(*string)(unsafe.Pointer(&v)) = string(b)
	case formBytes:
		*(*[]byte)(unsafe.Pointer(&v)) = append([]byte{}, b...) // not nil, if it is empty
	default:
		copy(c.bytesOf(&v), b)
	}
	return v
}

// decodeValues returns the values of b, all of a fixed size.
func (c codec[T]) decodeValues(b []byte) []T {
	v := make([]T, len(b)/c.size)
	copy(c.valueBytes(v), b)
	return v
}

// valueBytes returns the memory of values of a fixed size.
func (c codec[T]) valueBytes(v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*c.size)
}

// hashBytes returns the 64-bit FNV-1a hash of b.
func hashBytes(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}
