package sim_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/sim/scenario"
)

var update = flag.Bool("update", false, "write the expected output of the scenarios anew")

// TestScenario runs the scripts and compares what they print.
func TestScenario(t *testing.T) {
	files, err := filepath.Glob("../../testdata/scenario/*.txt")
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

// TestScenariosExplainThemselves wants scripts that begin with a comment and
// expect something besides the text of their output, which anyone can update.
func TestScenariosExplainThemselves(t *testing.T) {
	files, err := filepath.Glob("../../testdata/scenario/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), "# "), "%s: begin with a comment that says what the reader sees", file)
		require.Contains(t, string(text), "\nexpect ", file)
	}
}
