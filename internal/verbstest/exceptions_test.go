package verbstest

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExceptionsAreDocumented checks that docs/linux-rxe.md has the table of exceptions, and that each
// names a test, a reason and a difference.
func TestExceptionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/linux-rxe.md")
	require.NoError(t, err)
	documented := strings.Count(string(text), "\n| `TestContract/")
	for _, e := range Exceptions {
		if e.Kind != "rxe" {
			continue
		}
		documented--
		require.Contains(t, string(text), fmt.Sprintf("\n| `TestContract/%s` | %s |\n", e.Test, e.Reason))
		require.NotEqual(t, e.Fails == "", len(e.Statuses) == 0, "%s: want one kind of difference", e.Test)
		_, err := regexp.Compile(e.Fails)
		require.NoError(t, err)
		_, err = path.Match(e.Test, "")
		require.NoError(t, err)
	}
	require.Zero(t, documented, "rows that are no exception")
}

// failing is a test of the contract that fails with a text.
func failing(text string) func(t *T) {
	return func(t *T) {
		t.Cleanup(func() { t.Error("cleanup") })
		t.Run("inner", func(t *T) { t.Fatal(text) })
		t.Error("not reached")
	}
}

// TestExpectedFailure checks that a test with an exception fails as expected, in no other way, and at
// all.
func TestExpectedFailure(t *testing.T) {
	for name, f := range map[string]struct {
		run  func(t *T)
		says string // of the failure, or "" for none
	}{
		"expected":   {failing("the reason"), ""},
		"other":      {failing("another cause"), "fails, but not with"},
		"no failure": {func(*T) {}, "remove the exception"},
	} {
		r := &recorder{TB: t}
		root := &T{TB: r, device: &Device{}}
		r.run(func() { root.expectFailure(r, &Exception{Reason: "none", Fails: "the reason"}, "", f.run) })
		if f.says == "" {
			require.False(t, r.Failed(), "%s: %s", name, r)
		} else {
			require.Contains(t, r.String(), f.says, name)
		}
	}
}
