package datatype

import (
	"reflect"
	"slices"
	"strings"
)

// Structs returns the buffer of values of any type without pointers: of structs, which
// may contain arrays and other structs (MPI_Type_create_struct). Each is one element.
// Padding and fields named _ are not sent. If fields are named, only these are sent, in
// the order of their declaration.
//
// Each call computes the layout, so a buffer that is used often should be created once.
func Structs[T any](s []T, fields ...string) Buffer {
	l := layoutOf(reflect.TypeFor[T](), fields)
	if l.err != nil {
		return Buffer{layout: l}
	}
	return Buffer{mem: asBytes(s), layout: l, count: len(s), kind: Struct}
}

// layoutOf returns the layout of a type, or a layout with an error.
func layoutOf(t reflect.Type, fields []string) *layout {
	l := &layout{extent: int(t.Size()), name: t.String()}
	if len(fields) == 0 {
		l.err = l.addType(t, 0, "")
		return l
	}
	if t.Kind() != reflect.Struct {
		l.err = layoutError("%v is not a struct: no field %s", t, fields[0])
		return l
	}
	l.name += "{" + strings.Join(fields, ", ") + "}"
	for i, name := range fields {
		if f, ok := t.FieldByName(name); !ok || len(f.Index) != 1 {
			l.err = layoutError("%v has no field %s of its own", t, name)
			return l
		}
		if slices.Contains(fields[:i], name) {
			l.err = layoutError("field %s of %v is named twice", name, t)
			return l
		}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !slices.Contains(fields, f.Name) {
			continue
		}
		if l.err = l.addType(f.Type, int(f.Offset), f.Name); l.err != nil {
			return l
		}
	}
	return l
}

// addType appends the bytes of a type at offset off, whose field path is path.
func (l *layout) addType(t reflect.Type, off int, path string) error {
	if k, ok := basicKind(t); ok {
		l.add(off, k.Size())
		l.addKind(k, 1)
		return nil
	}
	switch t.Kind() {
	case reflect.Array:
		e := t.Elem()
		if k, ok := basicKind(e); ok {
			l.add(off, t.Len()*k.Size())
			l.addKind(k, t.Len())
			return nil
		}
		for i := range t.Len() {
			if err := l.addType(e, off+i*int(e.Size()), path+"[]"); err != nil {
				return err
			}
		}
		return nil
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Name == "_" {
				continue
			}
			if err := l.addType(f.Type, off+int(f.Offset), strings.TrimPrefix(path+"."+f.Name, ".")); err != nil {
				return err
			}
		}
		return nil
	case reflect.Uintptr:
		return layoutError("%s: type %v is an address, meaningless in another process", l.fieldName(path), t)
	}
	return layoutError("%s: type %v has pointers; send the memory they point to, or name the fields to send", l.fieldName(path), t)
}

// fieldName returns the name of a field with its type, for errors.
func (l *layout) fieldName(path string) string {
	if path == "" {
		return "the element"
	}
	return "field " + path + " of " + l.name
}
