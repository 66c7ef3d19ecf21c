package matrix_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	errors := m.Table("Errors", "The completion statuses.", "case")
	errors.Set("rxe to softrnic", "same", "wrong key")
	errors.Set("rxe to softrnic", fmt.Sprintf("differs (%d)", errors.Note("rxe reports another status.")), "short receive")
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
	// The completion statuses.
	//
	// | case | rxe to softrnic |
	// | --- | --- |
	// | wrong key | same |
	// | short receive | differs (1) |
	//
	// 1. rxe reports another status.
}

func TestMatrix(t *testing.T) {
	var m matrix.Matrix
	a := m.Table("A", "A paragraph.", "row")
	require.Same(t, a, m.Table("A", ""))
	a.Set("column", "one | two", "x")
	require.Contains(t, m.Markdown(""), `| x | one \| two |`)
	a.Count("column", 0, 1, "x")
	require.Contains(t, m.Markdown(""), "| x | **0 of 1** |")
	require.Equal(t, []int{1, 2, 1}, []int{a.Note("one"), a.Note(strings.Repeat("word ", 30)), a.Note("one")})
	require.Contains(t, m.Markdown(""), "\n\n1. one\n2. word "+strings.Repeat("word ", 21)+"word\n   word ")
	require.Panics(t, func() { a.Count("column", 1, 1, "x", "y") })
	path := filepath.Join(t.TempDir(), "out.md")
	require.NoError(t, m.WriteFile(path, "head"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, m.Markdown("head"), string(text))
	passed, total := m.Totals()
	require.Equal(t, []int{0, 1}, []int{passed, total})
}
