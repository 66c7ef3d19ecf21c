package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is what the repository holds: its files and folders, and what its Go
// files declare.
type source struct {
	files    []string                    // from the root, folders too
	packages map[string]map[string]*decl // by package, by name
	tests    map[string]bool
	nameRE   *regexp.Regexp
}

// decl is a declaration of a package, with what belongs to it if it is a type.
type decl struct {
	members map[string]bool // fields and methods
	from    []goName        // types whose members it has as well
}

// goName is a name such as rnic.Options or rnic.Options.Conn.
type goName struct{ pkg, name, member string }

func (n goName) String() string {
	return strings.TrimSuffix(n.pkg+"."+n.name+"."+n.member, ".")
}

func readSource(t *testing.T) *source {
	t.Helper()
	s := &source{packages: make(map[string]map[string]*decl), tests: make(map[string]bool)}
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == ".git" && e.IsDir():
			return filepath.SkipDir
		case e.Name() == ".git": // of a worktree, a file
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		s.files = append(s.files, filepath.ToSlash(rel))
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata") {
			return s.read(name)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(s.packages), 10)
	var names []string
	for name := range s.packages {
		names = append(names, name)
	}
	// Not behind a dot, a slash or a hyphen: those are parts of something else.
	s.nameRE = regexp.MustCompile(`(?:^|[^\w./-])(` + strings.Join(names, "|") + `)\.([A-Za-z]\w*)(?:\.([A-Za-z]\w*))?`)
	return s
}

// read notes what a file declares.
func (s *source) read(name string) error {
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	pkg := strings.TrimSuffix(f.Name.Name, "_test")
	if pkg == "main" {
		pkg = "" // nobody can name it
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						s.decl(pkg, n.Name)
					}
				case *ast.TypeSpec:
					s.decl(pkg, spec.Name.Name).take(pkg, spec.Type)
				}
			}
		case *ast.FuncDecl:
			if d.Recv != nil {
				if on, ok := typeName(pkg, d.Recv.List[0].Type); ok {
					s.decl(pkg, on.name).members[d.Name.Name] = true
				}
				continue
			}
			s.decl(pkg, d.Name.Name)
			if strings.HasSuffix(name, "_test.go") {
				s.tests[d.Name.Name] = true
			}
		}
	}
	return nil
}

// decl returns the declaration of a name, made anew if there is none.
func (s *source) decl(pkg, name string) *decl {
	if pkg == "" {
		return &decl{members: make(map[string]bool)}
	}
	if s.packages[pkg] == nil {
		s.packages[pkg] = make(map[string]*decl)
	}
	d := s.packages[pkg][name]
	if d == nil {
		d = &decl{members: make(map[string]bool)}
		s.packages[pkg][name] = d
	}
	return d
}

// take adds the members of a type.
func (d *decl) take(pkg string, typ ast.Expr) {
	var fields *ast.FieldList
	switch t := typ.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		if of, ok := typeName(pkg, typ); ok {
			d.from = append(d.from, of)
		}
		return
	}
	for _, f := range fields.List {
		for _, n := range f.Names {
			d.members[n.Name] = true
		}
		if of, ok := typeName(pkg, f.Type); ok && len(f.Names) == 0 { // embedded
			d.members[of.name] = true
			d.from = append(d.from, of)
		}
	}
}

// typeName is the name of a type in a file of the package.
func typeName(pkg string, typ ast.Expr) (n goName, ok bool) {
	switch t := typ.(type) {
	case *ast.Ident:
		return goName{pkg: pkg, name: t.Name}, true
	case *ast.StarExpr:
		return typeName(pkg, t.X)
	case *ast.IndexExpr:
		return typeName(pkg, t.X)
	case *ast.IndexListExpr:
		return typeName(pkg, t.X)
	case *ast.SelectorExpr:
		if x, isName := t.X.(*ast.Ident); isName {
			return goName{pkg: x.Name, name: t.Sel.Name}, true
		}
	}
	return n, false
}

// namesIn returns the Go names of our packages in a piece of text.
func (s *source) namesIn(text string) (names []goName) {
	for _, m := range s.nameRE.FindAllStringSubmatch(text, -1) {
		names = append(names, goName{m[1], m[2], m[3]})
	}
	return names
}

// foreign are the members of types of the standard library that ours embed.
var foreign = map[goName]bool{{"io", "Closer", "Close"}: true}

// has reports whether a name is declared.
func (s *source) has(n goName) bool {
	if foreign[n] {
		return true
	}
	d := s.packages[n.pkg][n.name]
	if d == nil || n.member == "" {
		return d != nil
	}
	return d.members[n.member] || slices.ContainsFunc(d.from, func(of goName) bool {
		of.member = n.member
		return s.has(of)
	})
}

// ours reports whether a path begins with a file or folder of the repository.
func (s *source) ours(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return slices.Contains(s.files, first)
}

// hasPath reports whether a path, or one that matches the pattern, exists.
func (s *source) hasPath(name string) bool {
	name = strings.TrimSuffix(name, "/")
	return slices.ContainsFunc(s.files, func(f string) bool {
		ok, err := path.Match(name, f)
		return ok && err == nil
	})
}
