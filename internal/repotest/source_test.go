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

// source is the content of the repository: its files and directories, and the
// declarations of its Go files.
type source struct {
	files    []string                    // paths from the root, with directories
	packages map[string]map[string]*decl // declarations by package name and identifier
	tests    map[string]bool
	nameRE   *regexp.Regexp
}

// decl is a declaration of a package. A type has members.
type decl struct {
	members map[string]bool // names of fields and methods
	embeds  []goName        // types whose members it has as well
}

// goName is a name such as rnic.Options or rnic.Options.Conn.
type goName struct{ pkg, name, member string }

func (n goName) String() string {
	return strings.TrimSuffix(n.pkg+"."+n.name+"."+n.member, ".")
}

// readSource reads the files and Go declarations of the repository.
func readSource(t *testing.T) *source {
	t.Helper()
	s := &source{packages: make(map[string]map[string]*decl), tests: make(map[string]bool)}
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == ".git" && e.IsDir():
			return filepath.SkipDir
		case e.Name() == ".git": // a file, in a worktree
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		s.files = append(s.files, filepath.ToSlash(rel))
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata") {
			return s.readFile(name)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(s.packages), 10)
	var names []string
	for name := range s.packages {
		names = append(names, name)
	}
	// A name after a dot, a slash or a hyphen is a part of something else.
	s.nameRE = regexp.MustCompile(`(?:^|[^\w./-])(` + strings.Join(names, "|") + `)\.([A-Za-z]\w*)(?:\.([A-Za-z]\w*))?`)
	return s
}

// readFile adds the declarations of a Go file.
func (s *source) readFile(name string) error {
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	pkg := strings.TrimSuffix(f.Name.Name, "_test")
	if pkg == "main" {
		pkg = "" // cannot be imported
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
					s.decl(pkg, spec.Name.Name).addMembers(pkg, spec.Type)
				}
			}
		case *ast.FuncDecl:
			if d.Recv != nil {
				if receiver, ok := typeName(pkg, d.Recv.List[0].Type); ok {
					s.decl(pkg, receiver.name).members[d.Name.Name] = true
				}
				continue
			}
			s.decl(pkg, d.Name.Name)
			if strings.HasSuffix(name, "_test.go") {
				s.tests[d.Name.Name] = true
			}
			if contract, ok := strings.CutPrefix(d.Name.Name, "test"); ok && strings.Contains(name, "verbstest/") {
				s.tests["TestContract/"+contract] = true
			}
		}
	}
	return nil
}

// decl returns the declaration of a name and creates it if necessary.
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

// addMembers adds the fields and methods of a type expression to d.
func (d *decl) addMembers(pkg string, typ ast.Expr) {
	var fields *ast.FieldList
	switch t := typ.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		if other, ok := typeName(pkg, typ); ok {
			d.embeds = append(d.embeds, other)
		}
		return
	}
	for _, f := range fields.List {
		for _, n := range f.Names {
			d.members[n.Name] = true
		}
		if other, ok := typeName(pkg, f.Type); ok && len(f.Names) == 0 { // embedded
			d.members[other.name] = true
			d.embeds = append(d.embeds, other)
		}
	}
}

// typeName returns the name of the type that the expression typ in package pkg denotes.
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

// findNames returns the Go names of packages of the module in a text.
func (s *source) findNames(text string) (names []goName) {
	for _, m := range s.nameRE.FindAllStringSubmatch(text, -1) {
		names = append(names, goName{m[1], m[2], m[3]})
	}
	return names
}

// foreign lists members that types inherit from types of the standard library.
var foreign = map[goName]bool{{"io", "Closer", "Close"}: true}

// hasName reports whether a name is declared.
func (s *source) hasName(n goName) bool {
	if foreign[n] {
		return true
	}
	d := s.packages[n.pkg][n.name]
	if d == nil || n.member == "" {
		return d != nil
	}
	return d.members[n.member] || slices.ContainsFunc(d.embeds, func(other goName) bool {
		other.member = n.member
		return s.hasName(other)
	})
}

// isOwnPath reports whether the first element of a path is in the repository.
func (s *source) isOwnPath(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return slices.Contains(s.files, first)
}

// hasPath reports whether a file or directory matches a path or pattern.
func (s *source) hasPath(name string) bool {
	name = strings.TrimSuffix(name, "/")
	return slices.ContainsFunc(s.files, func(f string) bool {
		ok, err := path.Match(name, f)
		return ok && err == nil
	})
}
