package main

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRunMistakes checks the words and the exit status of run without a program that it can run.
func TestRunMistakes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux only")
	}
	quiet(t)
	for line, want := range map[string]string{
		"run":                               "2 softrnic run needs a program, for example: softrnic run -- ibv_devinfo",
		"run --devices 17 true":             `2 --devices: "17": want a number of devices from 1 to 16`,
		"run --json true":                   "2 --json: not supported by softrnic run",
		"run --libraries /none true":        "1 drop-in libraries: /none/libsoftrnic-preload.so: no such file",
		"run --capture /none/x.pcapng true": "2 --capture: stat /none: no such file or directory",
		"env --libraries /none":             "1 drop-in libraries: /none/libsoftrnic-preload.so: no such file",
		"run --addr 192.0.2.1 true":         "2 --addr: 192.0.2.1: no interface of this machine has that address",
		"run --addr 192.0.2.0/24 true":      "2 --addr: no interface of this machine has an address in 192.0.2.0/24",
		"run --addr 127.0.0.1:5000 true":    "2 --addr: 127.0.0.1:5000: programs of libibverbs know no other UDP port than 4791",
		"env --addr 192.0.2.1":              "2 --addr: 192.0.2.1: no interface of this machine has that address",
		"env true":                          `2 softrnic env takes no argument, got "true"`,
	} {
		status, stdout, stderr := run(t, newApp(nil, nil), line)
		require.Empty(t, stdout)
		require.Contains(t, fmt.Sprintf("%d %s", status, strings.TrimPrefix(stderr, "softrnic: ")), want)
	}
}

func TestQuoteShell(t *testing.T) {
	require.Equal(t, `'loss 1%'`, quoteShell("loss 1%"))
	require.Equal(t, `'it'\''s'`, quoteShell("it's"))
}
