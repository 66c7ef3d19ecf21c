package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/debugclient"
	"github.com/softrnic/softrnic/rnic"
)

// TestTop checks the table and its JSON form for devices of this process.
func TestTop(t *testing.T) {
	a, _ := openServedDevices(t)
	text := stat(t, "top -d 1ms -n 2")
	require.Equal(t, 2, strings.Count(text, "PID "), "tables")
	program := filepath.Base(os.Args[0])
	require.Regexp(t, fmt.Sprintf(`(?m)^%d +%s +nic0 +%s +1 +0 B`, os.Getpid(), program, a.Addr()), text)

	var rows []topRow
	require.NoError(t, json.Unmarshal([]byte(stat(t, "top -d 1ms -n 1 -j")), &rows))
	require.Len(t, rows, 2)
	require.Equal(t, os.Getpid(), rows[0].PID)

	require.Equal(t, 2, strings.Count(stat(t, "stat --of "+program), "process "), "by the name of the program")
}

// TestTopRates checks the rates between two reports, and the order of the rows.
func TestTopRates(t *testing.T) {
	start := time.Unix(0, 0)
	report := func(name string, seconds, n int) debugclient.Peer {
		client, err := debugclient.NewClient("unix:/" + name)
		require.NoError(t, err)
		p := debugclient.Peer{Client: client, PID: 7}
		p.Report.Process.PID, p.Report.Device.Name, p.Report.Time = 7, name, start.Add(time.Duration(seconds)*time.Second)
		p.Report.Counters.QPCounters = rnic.QPCounters{SentPkts: uint64(10 * n), RcvdPkts: uint64(20 * n), SentBytes: uint64(1e6 * n), Retransmitted: uint64(n), SendErr: 3}
		p.Report.Drops = []rnic.DropInfo{{Packets: 4}}
		return p
	}
	before := []debugclient.Peer{report("a", 0, 0), report("b", 0, 0)}
	rows := topRows([]debugclient.Peer{report("a", 2, 1), report("b", 2, 6), report("new", 2, 9)}, before)
	require.Equal(t, []topRow{
		{PID: 7, Device: "b", SentPackets: 30, ReceivedPackets: 60, SentBytes: 3e6, Retransmitted: 3, Errors: 7},
		{PID: 7, Device: "a", SentPackets: 5, ReceivedPackets: 10, SentBytes: 5e5, Retransmitted: .5, Errors: 7},
		{PID: 7, Device: "new", Errors: 7}, // no previous report
	}, rows)
}

func TestFormatRate(t *testing.T) {
	for n, want := range map[float64]string{0: "0 B", 999: "999 B", 999.6: "1 kB", 1536: "1.54 kB", 2.5e9: "2.5 GB", 5e12: "5e+03 GB"} {
		require.Equal(t, want, formatRate(n))
	}
}
