package sim_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic/internal/sim/scenario"
)

var update = flag.Bool("update", false, "write the expected output of the scenarios anew")

// TestScenario runs the scripts and compares their output.
func TestScenario(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/scenario/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			got, err := scenario.Run(string(want))
			require.NoError(t, err, "so far:\n%s", got)
			if *update && got != string(want) {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(want), got)
		})
	}
}

// TestScenariosExplainThemselves checks that scripts begin with a comment and expect more than the
// text of their output, which -update would replace.
func TestScenariosExplainThemselves(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/scenario/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), "# "), "%s: begin with a comment that says what the reader sees", file)
		require.Contains(t, string(text), "\nexpect ", file)
	}
}

var scenarioRE = regexp.MustCompile("(?s)\n```scenario\n(.*?\n)```\n")

// TestDocsScenarios runs the blocks marked "scenario" in the documents and compares
// their output.
func TestDocsScenarios(t *testing.T) {
	files, err := filepath.Glob("../../../docs/*.md")
	require.NoError(t, err)
	ran := 0
	for _, file := range append(files, "../../../README.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range scenarioRE.FindAllSubmatch(text, -1) {
			ran++
			got, err := scenario.Run(string(m[1]))
			require.NoError(t, err, "%s: output up to the error:\n%s", file, got)
			require.Contains(t, got, "\nexpect ", "%s: scenario without an expect line", file)
			if *update {
				text = bytes.Replace(text, m[1], []byte(got), 1)
				continue
			}
			require.Equal(t, string(m[1]), got, file)
		}
		if *update {
			require.NoError(t, os.WriteFile(file, text, 0o644))
		}
	}
	require.GreaterOrEqual(t, ran, 4)
}
