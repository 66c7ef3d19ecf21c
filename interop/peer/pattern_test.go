package peer

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestPattern compares every byte with the formula, for ranges of any length.
func TestPattern(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 3*patternPeriod).Draw(t, "n")
		seed := rapid.Uint32().Draw(t, "seed")
		for i, b := range Pattern(n, seed) {
			k := uint64(i % patternPeriod)
			require.Equal(t, byte(k*k*7+k*uint64(seed)+k>>8+uint64(seed)), b)
		}
	})
}

// TestPatternOfProgram checks that the Python program has the same pattern.
func TestPatternOfProgram(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: the program's pattern is not compared")
	}
	_, text, _ := strings.Cut(string(Program), "BLOCK =")
	text, _, _ = strings.Cut(text, "def event_fds")
	out, err := exec.Command(python, "-c", "import sys\nBLOCK ="+text+"sys.stdout.buffer.write(pattern(3000000001, 20000))").Output()
	require.NoError(t, err)
	require.Equal(t, Pattern(20000, 3000000001), out)
}
