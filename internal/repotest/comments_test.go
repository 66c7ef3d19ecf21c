package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	wordRE = regexp.MustCompile(`\b[A-Za-z_]\w*`)

	// camelRE matches words that can only be identifiers.
	camelRE = regexp.MustCompile(`^[a-z][a-z0-9]*[A-Z]`)
)

// foreignWords are words of comments that look like identifiers of this module.
var foreignWords = map[string]bool{"gRPC": true, "xN": true} // xN: a hexadecimal escape

// TestCommentsNameIdentifiers checks that identifiers in comments exist: words such as
// leaveToLeader, and exported names such as qp.Core.Drain of the packages of this module.
// It skips blocks of code, which have variables of their own.
func TestCommentsNameIdentifiers(t *testing.T) {
	src := readSource(t)
	known := map[string]bool{}
	type comment struct {
		position token.Position
		text     string
	}
	var comments []comment
	for _, name := range src.files {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata") {
			continue
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				known[n.Name] = true
			case *ast.BasicLit:
				for _, word := range wordRE.FindAllString(n.Value, -1) {
					known[word] = true
				}
			}
			return true
		})
		for _, group := range f.Comments {
			for _, c := range group.List {
				if !strings.HasPrefix(c.Text, "//\t") && !strings.HasPrefix(c.Text, "//go:") {
					comments = append(comments, comment{files.Position(c.Pos()), c.Text})
				}
			}
		}
	}
	words := 0
	for _, c := range comments {
		for _, word := range wordRE.FindAllString(c.text, -1) {
			if !camelRE.MatchString(word) || foreignWords[word] {
				continue
			}
			words++
			if !known[word] {
				t.Errorf("%v: no identifier %s", c.position, word)
			}
		}
		if strings.HasSuffix(c.position.Filename, "_test.go") {
			continue
		}
		for _, n := range src.findNames(c.text) {
			if len(n.name) > 1 && ast.IsExported(n.name) && !src.hasName(n) {
				t.Errorf("%v: no Go name %v", c.position, n)
			}
		}
	}
	require.Greater(t, words, 2000)
}
