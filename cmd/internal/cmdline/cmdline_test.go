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

	"github.com/softrnic/softrnic/cmd/internal/cmdline"
	"github.com/softrnic/softrnic/cmd/internal/size"
)

// TestFlagError checks the text for each type of flag: it names the flag, the value and the valid
// values, and does not mention package strconv.
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
		{"--nubmer 3", "unknown flag: --nubmer; did you mean --number?"},
		{"--sise=3", "unknown flag: --sise; did you mean --size?"},
		{"-q", "unknown shorthand flag: 'q' in -q; `tool --help` lists the flags"},
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

// TestUnknownCommand checks the suggestion for each misspelled command.
func TestUnknownCommand(t *testing.T) {
	add := func(c *cobra.Command, names ...string) *cobra.Command {
		for _, name := range names {
			c.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
		}
		return c
	}
	perf := add(&cobra.Command{Use: "perf"}, "write_bw", "write_lat", "send_bw")
	root := add(&cobra.Command{Use: "softrnic"}, "devinfo", "stat", "mpirun")
	root.AddCommand(perf)
	for word, want := range map[string]string{
		"pref":        "softrnic perf",
		"stta":        "softrnic stat",
		"MPIrun":      "softrnic mpirun",
		"ibv_devinfo": "softrnic devinfo",
		"ib_write_bw": "softrnic perf write_bw",
		"write_latt":  "softrnic perf write_lat",
	} {
		require.EqualError(t, cmdline.UnknownCommand(root, word), "unknown command \""+word+"\" of `softrnic`; did you mean `"+want+"`?")
	}
	require.EqualError(t, cmdline.UnknownCommand(root, "conquer"), "unknown command \"conquer\" of `softrnic`; want one of devinfo, mpirun, perf, stat")
	require.EqualError(t, cmdline.UnknownCommand(perf, "sned_bw"), "unknown command \"sned_bw\" of `softrnic perf`; did you mean `softrnic perf send_bw`?")
}

// TestFlagOfUnknownCommand checks that an unknown subcommand is reported before the flag after it.
func TestFlagOfUnknownCommand(t *testing.T) {
	root := &cobra.Command{Use: "softrnic", Args: cobra.ArbitraryArgs, SilenceErrors: true, SilenceUsage: true, Run: func(*cobra.Command, []string) {}}
	root.AddCommand(&cobra.Command{Use: "perf", Run: func(*cobra.Command, []string) {}})
	root.SetFlagErrorFunc(cmdline.FlagError)
	root.SetArgs([]string{"pref", "-s", "8"})
	require.EqualError(t, root.Execute(), "unknown command \"pref\" of `softrnic`; did you mean `softrnic perf`?")
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
