package repotest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWalks checks that the functions in the tables of docs/walks.md are in the files beside
// them.
func TestWalks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "walks.md"))
	require.NoError(t, err)
	name := regexp.MustCompile("`([^`]+)`")
	steps, walks := 0, strings.Count(string(text), "\n## ")
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		file := name.FindStringSubmatch(cells[1])[1]
		source, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		for _, f := range name.FindAllStringSubmatch(cells[2], -1) {
			require.Regexp(t, `(?m)^func (\([^)]*\) )?`+f[1]+`[\[(]`, string(source), "%s: %s", file, f[1])
			steps++
		}
	}
	require.Equal(t, 5, walks)
	require.Greater(t, steps, 60)
}
