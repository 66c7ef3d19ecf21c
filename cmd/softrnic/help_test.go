package main

import (
	"bytes"
	"cmp"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// goWords are words of Go's packages, which are of no use to a user.
var goWords = regexp.MustCompile(`strconv|parsing "|invalid syntax|context (canceled|deadline exceeded)|time: `)

// walk calls do for each command that the user can call, with its name below "softrnic".
func walk(c *cobra.Command, words string, do func(c *cobra.Command, words string)) {
	do(c, words)
	for _, sub := range c.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" {
			walk(sub, strings.TrimSpace(words+" "+sub.Name()), do)
		}
	}
}

// TestBadValues passes an invalid value to every flag of every command: the status is 2, and the
// text names the flag. A flag that accepts any text is skipped.
func TestBadValues(t *testing.T) {
	quiet(t)
	n := 0
	walk(newApp(nil, nil).rootCommand(), "", func(c *cobra.Command, words string) {
		c.InheritedFlags() // merges the flags of the parent commands into Flags
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.HasPrefix(f.Value.Type(), "string") || f.Name == "help" {
				return
			}
			n++
			for _, value := range []string{"abc", "99999999999999999999", "%"} {
				if strings.HasPrefix(f.Value.Type(), "float") && value[0] == '9' {
					continue // a number
				}
				line := strings.TrimSpace(words + " --" + f.Name + "=" + value)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // a server that starts waits for a client
				var out, diag bytes.Buffer
				status, stderr := newApp(&out, &diag).runCommand(ctx, strings.Fields(line)), diag.String()
				cancel()
				require.Equal(t, 2, status, "%s: %s", line, stderr)
				require.NotRegexp(t, goWords, stderr, line)
				require.Regexp(t, "--"+f.Name+"|-"+cmp.Or(f.Shorthand, "-"+f.Name)+"\\b", stderr, line)
			}
		})
	})
	require.Greater(t, n, 200)
}

// TestGlobalFlags checks that global flags are in the help of a command, and accepted, where they
// have an effect.
func TestGlobalFlags(t *testing.T) {
	quiet(t)
	for words, want := range map[string]string{
		"": "addr device impair json", "devinfo": "addr device impair json", "doctor": "addr impair json", "stat": "json", "top": "json", "history": "json",
		"stat history": "json", "capture": "json", "version": "json", "pingpong rc": "addr device impair json", "perf send_bw": "addr device impair json",
		"rping": "addr impair", "ucmatose": "addr impair", "udaddy": "addr impair", "sdp cat": "addr impair", "sdp proxy": "addr impair json",
		"mpirun": "addr impair", "run": "addr impair", "env": "addr impair",
	} {
		_, help, _ := run(t, newApp(nil, nil), words+" --help")
		for _, name := range []string{"addr", "device", "impair", "json"} {
			require.Equal(t, strings.Contains(want, name), regexp.MustCompile(`(?m)^ .*--`+name+`\b`).MatchString(help), "%s: --%s", words, name)
		}
		if words != "" && !strings.Contains(want, "addr") {
			for _, flag := range []string{"--addr 127.0.0.1", "--impair ecn"} {
				status, stdout, stderr := run(t, newApp(nil, nil), words+" "+flag)
				require.Equal(t, 2, status, words)
				require.Empty(t, stdout)
				require.Contains(t, stderr, "softrnic "+words+" opens no device")
			}
		}
	}
}

// TestRootHelp checks the groups of commands and the example.
func TestRootHelp(t *testing.T) {
	_, help, _ := run(t, newApp(nil, nil), "--help")
	for _, g := range groups {
		require.Contains(t, help, g.Title+"\n  ")
	}
	require.Contains(t, help, "Examples:\n  softrnic doctor")
}

// TestCompletion checks the completion of flag values.
func TestCompletion(t *testing.T) {
	quiet(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"pingpong", "rc", "--mtu", ""}, "256\n512\n1024\n2048\n4096\n"},
		{[]string{"perf", "send_bw", "-c", ""}, "RC\nUC\nUD\n"},
		{[]string{"ucmatose", "-f", "ip"}, "ip\nipv6\n"},
		{[]string{"stat", "--of", ""}, ":4\n"},
	} {
		var out, diag bytes.Buffer
		require.Zero(t, newApp(&out, &diag).runCommand(t.Context(), append([]string{"__complete"}, c.args...)))
		require.Contains(t, out.String(), c.want, "%q", c.args)
	}
}
