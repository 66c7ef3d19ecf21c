package repotest

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// constants evaluates exported and unexported constants from the source of the
// repository.
type constants struct {
	t        *testing.T
	packages map[string][]*ast.File // by directory
}

// get returns the value of a constant, named by directory and identifier, such as
// "mpi.sampleInterval". For the name of a field, such as an option, it returns the
// constant that the package assigns to the field, if there is exactly one.
func (c *constants) get(name string) int64 {
	c.t.Helper()
	dot := strings.LastIndexByte(name, '.')
	value := c.find(name[:dot], name[dot+1:])
	if value == nil {
		c.t.Errorf("%s: no constant of this name, or a field with several values", name)
		return 0
	}
	n, exact := constant.Int64Val(constant.ToInt(value))
	require.True(c.t, exact, "%s: constant %v is no int64", name, value)
	return n
}

// time returns a constant that is a time.Duration or a number of nanoseconds.
func (c *constants) time(name string) time.Duration {
	c.t.Helper()
	return time.Duration(c.get(name))
}

// find returns the value of a constant or field of the package in dir, or nil.
func (c *constants) find(dir, name string) constant.Value {
	var values []constant.Value // of fields
	add := func(f *ast.File, value ast.Expr) {
		if v := c.eval(dir, f, value); v != nil {
			values = append(values, v)
		}
	}
	for _, f := range c.files(dir) {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok {
						for i, n := range v.Names {
							if n.Name == name && i < len(v.Values) {
								return c.eval(dir, f, v.Values[i])
							}
						}
					}
				}
			}
		}
	}
	for _, f := range c.files(dir) { // after all declarations, because a field may have the name of a constant
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == name {
					add(f, n.Value)
				}
			case *ast.AssignStmt:
				if field, ok := n.Lhs[0].(*ast.SelectorExpr); ok && field.Sel.Name == name && len(n.Lhs) == len(n.Rhs) {
					add(f, n.Rhs[0])
				}
			}
			return true
		})
	}
	if len(values) != 1 {
		return nil
	}
	return values[0]
}

func (c *constants) files(dir string) []*ast.File {
	if files, ok := c.packages[dir]; ok {
		return files
	}
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	require.NoError(c.t, err)
	var files []*ast.File
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(c.t, err)
			files = append(files, f)
		}
	}
	require.NotEmpty(c.t, files, dir)
	c.packages[dir] = files
	return files
}

// eval returns the value of a constant expression, or nil if x is none.
func (c *constants) eval(dir string, f *ast.File, x ast.Expr) constant.Value {
	switch x := x.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(x.Value, x.Kind, 0)
	case *ast.ParenExpr:
		return c.eval(dir, f, x.X)
	case *ast.Ident:
		if isConstant(c.files(dir), x.Name) {
			return c.find(dir, x.Name)
		}
	case *ast.CallExpr: // a conversion, if its argument is constant
		if len(x.Args) == 1 {
			return c.eval(dir, f, x.Args[0])
		}
	case *ast.SelectorExpr:
		from, _ := x.X.(*ast.Ident)
		if from == nil {
			return nil
		}
		if from.Name == "time" {
			if d, ok := units[strings.ToLower(x.Sel.Name)]; ok {
				return constant.MakeInt64(int64(d))
			}
			return nil
		}
		for _, imported := range f.Imports {
			path, _ := strconv.Unquote(imported.Path.Value)
			if other, ok := strings.CutPrefix(path, module); ok && filepath.Base(path) == from.Name && isConstant(c.files(other), x.Sel.Name) {
				return c.find(other, x.Sel.Name)
			}
		}
	case *ast.BinaryExpr:
		a, b := c.eval(dir, f, x.X), c.eval(dir, f, x.Y)
		switch {
		case a == nil || b == nil:
		case x.Op == token.SHL || x.Op == token.SHR:
			n, _ := constant.Uint64Val(b)
			return constant.Shift(a, x.Op, uint(n))
		case x.Op == token.QUO:
			return constant.BinaryOp(a, token.QUO_ASSIGN, b)
		case x.Op == token.ADD || x.Op == token.SUB || x.Op == token.MUL:
			return constant.BinaryOp(a, x.Op, b)
		}
	}
	return nil
}

// isConstant reports whether the files of a package declare name as a constant or
// variable.
func isConstant(files []*ast.File, name string) bool {
	for _, f := range files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok && (d.Tok == token.CONST || d.Tok == token.VAR) {
				for _, spec := range d.Specs {
					for _, n := range spec.(*ast.ValueSpec).Names {
						if n.Name == name {
							return true
						}
					}
				}
			}
		}
	}
	return false
}
