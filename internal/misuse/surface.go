package misuse

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Surface is the exported API of a package and the values to call it with.
type Surface struct {
	// Dir is the directory of the package's source.
	Dir string

	// Funcs has every exported function by name, generic ones instantiated.
	Funcs map[string]any

	// Types has the receivers of every exported type with methods. For each handle
	// that is a pointer the nil pointer and a pointer to the zero value are added, but
	// for errors.
	Types map[string][]Receiver

	// Handles names unexported types that programs use through interfaces. Their
	// exported methods belong to the API.
	Handles []string

	// NoNull is the reason why the package has no null handles: then nil pointers and
	// pointers to zero values are not added.
	NoNull string

	// Values are further arguments, tried for every parameter of their type.
	Values []any

	// Except names functions ("Init"), types ("Place"), receivers ("Deque on nil"), methods
	// ("Comm.Recv"), and methods on receivers ("Comm.Recv on live") that are not called,
	// with the reason.
	Except map[string]string

	// Errors are those that methods of unusable receivers return, any if there are none.
	Errors []error

	// Quiet names methods ("Request.Wait"), or methods on receivers ("Cart.Shift on
	// freed"), that return no error although the receiver is unusable, with the reason.
	// All others whose last result is an error have to return one.
	Quiet map[string]string
}

// A Receiver is a value whose methods are called.
type Receiver struct {
	Name string

	// Make returns a new value for each call.
	Make func() any

	// Usable reports that calls with valid arguments work, and may therefore wait:
	// every call has at least one argument that is out of range, or none at all.
	Usable bool
}

// callTimeout bounds a call. It limits a failing test only.
const callTimeout = 20 * time.Second

// Check calls the surface and reports panics, hangs, missing errors and missing
// entries.
func (s *Surface) Check(t *testing.T) {
	src := s.readSource(t)
	used := map[string]bool{}
	except := func(names ...string) bool {
		for _, n := range names {
			if _, ok := s.Except[n]; ok {
				used[n] = true
				return true
			}
		}
		return false
	}
	for _, name := range src.funcs {
		f, ok := s.Funcs[name]
		switch {
		case except(name):
		case !ok:
			t.Errorf("function %s: no entry in Surface.Funcs", name)
		default:
			s.callFunc(t, name, reflect.ValueOf(f), false, false)
		}
	}
	for _, name := range src.types {
		list, ok := s.Types[name]
		if except(name) {
			continue
		}
		if !ok {
			t.Errorf("type %s: no entry in Surface.Types", name)
		}
		if s.NoNull == "" {
			list = withNull(list)
		}
		for _, r := range list {
			typ := reflect.TypeOf(r.Make())
			for i := range typ.NumMethod() {
				method := name + "." + typ.Method(i).Name
				if src.declaredInTests(name, typ.Method(i).Name) || r.Name == "nil" && src.byValue[method] { // of which the language itself panics
					continue
				}
				if except(method, name+" on "+r.Name, method+" on "+r.Name) {
					continue
				}
				_, always := s.Quiet[method]
				_, quiet := s.Quiet[method+" on "+r.Name]
				quiet = quiet || always
				used[method], used[method+" on "+r.Name] = true, true
				run := func() reflect.Value { return reflect.ValueOf(r.Make()).Method(i) }
				s.callEach(t, method+" on "+r.Name, run, r.Usable, !r.Usable && !quiet)
			}
		}
	}
	for name := range s.Except {
		if !used[name] {
			t.Errorf("exception %s: no such function or method", name)
		}
	}
	for name := range s.Quiet {
		if !used[name] {
			t.Errorf("quiet %s: no such method", name)
		}
	}
}

// withNull adds the nil pointer and the zero value of each pointer type, except error types.
func withNull(list []Receiver) (all []Receiver) {
	seen := map[reflect.Type]bool{}
	for _, r := range list {
		typ := reflect.TypeOf(r.Make())
		if typ.Kind() == reflect.Pointer && !seen[typ] && !typ.Implements(reflect.TypeFor[error]()) {
			seen[typ] = true
			all = append(all,
				Receiver{Name: "nil", Make: func() any { return reflect.Zero(typ).Interface() }},
				Receiver{Name: "zero", Make: func() any { return reflect.New(typ.Elem()).Interface() }})
		}
	}
	return append(all, list...)
}

// A source is the exported API as declared in the source.
type source struct {
	funcs, types []string
	byValue      map[string]bool // methods whose receiver is no pointer
	methods      map[string]bool // names of methods
	testOnly     map[string]bool // methods that tests of the package declare, with and without their type
}

func (s *Surface) readSource(t *testing.T) (src source) {
	t.Helper()
	src.byValue, src.methods, src.testOnly = map[string]bool{}, map[string]bool{}, map[string]bool{}
	files, err := filepath.Glob(filepath.Join(s.Dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			d, ok := d.(*ast.FuncDecl)
			switch {
			case !ok || !d.Name.IsExported():
			case !strings.HasSuffix(name, "_test.go"):
				s.addFunc(&src, d)
			case d.Recv != nil:
				typ, _ := receiverOf(d)
				src.testOnly[typ+"."+d.Name.Name], src.testOnly[d.Name.Name] = true, true
			}
		}
	}
	slices.Sort(src.funcs)
	slices.Sort(src.types)
	src.types = slices.Compact(src.types)
	if len(src.funcs)+len(src.types) == 0 {
		t.Fatalf("%s: no exported functions", s.Dir)
	}
	return src
}

func (s *Surface) addFunc(src *source, d *ast.FuncDecl) {
	if d.Recv == nil {
		src.funcs = append(src.funcs, d.Name.Name)
		return
	}
	src.methods[d.Name.Name] = true
	if typ, pointer := receiverOf(d); ast.IsExported(typ) || slices.Contains(s.Handles, typ) {
		src.types = append(src.types, typ)
		src.byValue[typ+"."+d.Name.Name] = !pointer
	}
}

// declaredInTests reports whether only tests declare a method of a type, or of one that it embeds.
func (src *source) declaredInTests(typ, method string) bool {
	return src.testOnly[typ+"."+method] || src.testOnly[method] && !src.methods[method]
}

// receiverOf returns the type of a method, and whether its receiver is a pointer.
func receiverOf(d *ast.FuncDecl) (name string, pointer bool) {
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ, pointer = x.X, true
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name, pointer
		default:
			return "", pointer
		}
	}
}

func (s *Surface) callFunc(t *testing.T, name string, f reflect.Value, usable, fails bool) {
	s.callEach(t, name, func() reflect.Value { return f }, usable, fails)
}

// callEach calls a function with each list of arguments.
func (s *Surface) callEach(t *testing.T, name string, f func() reflect.Value, usable, fails bool) {
	typ := f().Type()
	for _, args := range s.argumentLists(typ, usable) {
		failure := make(chan string, 1)
		go func() {
			defer func() {
				if p := recover(); p != nil {
					failure <- fmt.Sprintf("panics: %v\n%s", p, debug.Stack())
				}
			}()
			out := f().Call(args)
			text := ""
			if n := len(out); fails && n > 0 && typ.Out(n-1) == reflect.TypeFor[error]() {
				err, _ := out[n-1].Interface().(error)
				text = s.checkError(err)
			}
			failure <- text
		}()
		select {
		case text := <-failure:
			if text != "" {
				t.Errorf("%s(%s): %s", name, formatArgs(args), text)
				return // one of its failures is enough
			}
		case <-time.After(callTimeout):
			t.Fatalf("%s(%s): hangs", name, formatArgs(args))
		}
	}
}

// checkError returns the failure of a method that returns err for an unusable receiver.
func (s *Surface) checkError(err error) string {
	switch {
	case err == nil:
		return "returns no error"
	case len(s.Errors) > 0 && !slices.ContainsFunc(s.Errors, func(want error) bool { return errors.Is(err, want) }):
		return fmt.Sprintf("returns an error that is none of the package's: %v", err)
	}
	return ""
}

func formatArgs(args []reflect.Value) string {
	var list []string
	for _, a := range args {
		text := fmt.Sprintf("%v", a)
		if a.Kind() == reflect.Struct || len(text) > 40 {
			text = a.Type().String() + "{...}"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}
