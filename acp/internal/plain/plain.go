// Package plain handles values whose memory can be sent as it is.
package plain

import (
	"reflect"
	"unsafe"
)

// IsPlain reports whether values of a type can be sent as they are in memory: they contain no pointers,
// slices, strings, maps, channels, functions or interfaces.
func IsPlain(t reflect.Type) bool {
	switch k := t.Kind(); {
	case k == reflect.Array:
		return IsPlain(t.Elem())
	case k == reflect.Struct:
		for i := range t.NumField() {
			if !IsPlain(t.Field(i).Type) {
				return false
			}
		}
		return true
	default:
		return k >= reflect.Bool && k <= reflect.Complex128 && k != reflect.Uintptr
	}
}

// BytesOf returns the memory of values. It does not return nil.
func BytesOf[T any](v []T) []byte {
	if len(v) == 0 {
		return []byte{}
	}
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(one)))
}
