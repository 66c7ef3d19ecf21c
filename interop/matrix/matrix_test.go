package matrix_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/matrix"
)

func Example() {
	var m matrix.Matrix
	programs := m.Table("Programs", "Each cell is a number of runs.", "program", "softrnic is")
	programs.Count("clean", 2, 2, "ib_send_bw", "server")
	programs.Count("loss", 0, 1, "ib_send_bw", "server")
	programs.Count("clean", 1, 1, "ib_send_bw", "client")
	m.Table("Errors", "What completes how.", "case").Set("rxe to softrnic", "same", "wrong key")
	fmt.Print(m.Markdown("# Results\n"))
	// Output:
	// # Results
	//
	// **3 of 4 checks passed.**
	//
	// ## Programs
	//
	// Each cell is a number of runs.
	//
	// | program | softrnic is | clean | loss |
	// | --- | --- | --- | --- |
	// | ib_send_bw | server | 2 | **0 of 1** |
	// | ib_send_bw | client | 1 |  |
	//
	// ## Errors
	//
	// What completes how.
	//
	// | case | rxe to softrnic |
	// | --- | --- |
	// | wrong key | same |
}

func TestMatrix(t *testing.T) {
	var m matrix.Matrix
	a := m.Table("A", "About it.", "row")
	require.Same(t, a, m.Table("A", ""))
	a.Set("column", "one | two", "x")
	require.Contains(t, m.Markdown(""), `| x | one \| two |`)
	a.Count("column", 0, 1, "x")
	require.Contains(t, m.Markdown(""), "| x | **0 of 1** |")
	require.Panics(t, func() { a.Count("column", 1, 1, "x", "y") })
	path := filepath.Join(t.TempDir(), "out.md")
	require.NoError(t, m.WriteFile(path, "head"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, m.Markdown("head"), string(text))
	passed, total := m.Totals()
	require.Equal(t, []int{0, 1}, []int{passed, total})
}
