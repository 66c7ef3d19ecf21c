package mpi_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// declared are the names that the package's files declare, methods with the type of their receiver
// before the name, and comments are the comments.
func declared(t *testing.T) (names map[string]bool, comments string) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	names = map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, c := range f.Comments {
			comments += c.Text()
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					of := d.Recv.List[0].Type
					if p, ok := of.(*ast.StarExpr); ok {
						of = p.X
					}
					if g, ok := of.(*ast.IndexExpr); ok { // of a generic type
						of = g.X
					}
					name = of.(*ast.Ident).Name + "." + name
				}
				names[name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = true
						if st, ok := s.Type.(*ast.StructType); ok {
							for _, field := range st.Fields.List {
								for _, n := range field.Names {
									names[s.Name.Name+"."+n.Name] = true
								}
							}
						}
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names[n.Name] = true
						}
					}
				}
			}
		}
	}
	return names, comments
}

// TestDocumentedNames compares the MPI names in doc comments with the tables in docs/mpi.md.
func TestDocumentedNames(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "mpi.md"))
	require.NoError(t, err)
	names, comments := declared(t)
	for _, m := range regexp.MustCompile(`\((MPI_\w+)\)`).FindAllStringSubmatch(comments, -1) {
		if !strings.HasPrefix(m[1], "MPI_ERR_") {
			require.Contains(t, string(text), "`"+m[1]+"`")
		}
	}
	_, tables, _ := strings.Cut(string(text), "## Names")
	tables, _, _ = strings.Cut(tables, "## Limitations")
	seen := 0
	for line := range strings.Lines(tables) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			continue
		}
		for _, m := range regexp.MustCompile("`([A-Za-z.]+)`").FindAllStringSubmatch(cells[2], -1) {
			name := strings.TrimPrefix(m[1], "mpi.")
			switch pkg, _, _ := strings.Cut(name, "."); pkg {
			case "time", "datatype", "Buffer":
				continue
			}
			require.True(t, names[name] || names["Comm."+name] || names["Cart."+name], "%s of %s", name, line)
			seen++
		}
	}
	require.Greater(t, seen, 150)
}
