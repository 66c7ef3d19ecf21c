package cmdline_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/cmdline"
	"github.com/softrnic/softrnic/internal/size"
)

// TestFlagError checks the text for each type of a flag: it names flag, value and what is
// wanted, and has no word of package strconv.
func TestFlagError(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"-n abc", `-n, --number: "abc": want a whole number`},
		{"-n 99999999999999999999", `-n, --number: "99999999999999999999": want a whole number`},
		{"--rate x", `--rate: "x": want a number`},
		{"--for 10", `--for: "10": want a time such as 10s or 1m30s`},
		{"--class 256", `--class: "256": want a whole number from 0 to 255`},
		{"--labels 1,x", `--labels: "1,x": want whole numbers from 0 with commas between`},
		{"--percent x", `--percent: "x": want whole numbers with commas between`},
		{"--on=maybe", `--on: "maybe": want true or false`},
		{"-s 1Q", `-s, --size: "1Q" is not a number like 64, 4K or 1MiB`},
		{"--bogus", "unknown flag: --bogus; `tool --help` lists the flags"},
		{"-n", "flag needs an argument: 'n' in -n; `tool --help` lists the flags"},
	} {
		var bytes int
		tool := &cobra.Command{Use: "tool", SilenceErrors: true, SilenceUsage: true, Run: func(*cobra.Command, []string) {}}
		tool.SetFlagErrorFunc(cmdline.FlagError)
		f := tool.Flags()
		f.IntP("number", "n", 0, "")
		f.Float64("rate", 0, "")
		f.Duration("for", time.Second, "")
		f.Uint8("class", 0, "")
		f.UintSlice("labels", nil, "")
		f.IntSlice("percent", nil, "")
		f.Bool("on", false, "")
		f.VarP(size.Var(&bytes), "size", "s", "")
		tool.SetArgs(strings.Fields(c.line))
		err := tool.Execute()
		require.EqualError(t, err, c.want)
		require.NotContains(t, err.Error(), "strconv")
	}
}

// failing is a writer that fails after a number of calls.
type failing struct{ calls int }

func (f *failing) Write(b []byte) (int, error) {
	if f.calls--; f.calls < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestOutput(t *testing.T) {
	o := cmdline.NewOutput(&failing{1})
	_, err := io.WriteString(o, "one")
	require.NoError(t, err)
	require.NoError(t, o.Err())
	_, err = io.WriteString(o, "two")
	require.ErrorIs(t, err, io.ErrShortWrite)
	require.ErrorIs(t, err, o.Err(), "told once")

	require.False(t, cmdline.IsTerminal(cmdline.NewOutput(&bytes.Buffer{})))
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	require.Equal(t, cmdline.IsTerminal(null), cmdline.IsTerminal(cmdline.NewOutput(null)))
}

func TestVersion(t *testing.T) {
	v := cmdline.Version{Version: "v0.4.0", Revision: "1a2b3c4", Modified: true, Go: "go1.26", System: "linux/amd64"}
	require.Equal(t, "v0.4.0 1a2b3c4 (modified), go1.26 linux/amd64", v.String())
	require.NotEmpty(t, cmdline.ReadVersion().Go)
}
