package main

import (
	"encoding/json"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/rnic"
)

// fixed returns an app whose device is the same in every run.
func fixed(t *testing.T) *app {
	t.Helper()
	addr := netip.MustParseAddrPort("192.0.2.1:4791")
	conn, err := memory.NewLive().Attach(addr, memory.Options{})
	require.NoError(t, err)
	a := newApp(nil, nil)
	a.options = rnichook.WithHooks(rnic.Options{Name: "softrnic0", Addr: addr},
		rnichook.Hooks{Conn: conn, Rand: func() uint32 { return 0x01234567 }, Clock: func() int64 { return 1 }})
	return a
}

func TestDevinfo(t *testing.T) {
	quiet(t)
	for line, name := range map[string]string{
		"devinfo":                 "devinfo.golden",
		"devinfo -v":              "devinfo-v.golden",
		"devinfo -v -d softrnic0": "devinfo-v.golden",
		"devinfo --verbose -i 1":  "devinfo-v.golden",
		"devinfo -l":              "devinfo-l.golden",
		"devinfo -v --json":       "devinfo-v.json",
		"devinfo -l -j":           "devinfo-l.json",
	} {
		status, stdout, stderr := run(t, fixed(t), line)
		require.Zero(t, status, stderr)
		golden(t, name, stdout)
	}
}

var attribute = regexp.MustCompile(`^(\t*[^\t:]+(?:\[ *\d+\])?:)(\t*)`)

// layout returns a listing without values: each label with the tabs behind it, and lines without a
// label.
func layout(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		switch m := attribute.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "\t\t\t\t\t") && !strings.Contains(line, "NO SUPPORT"):
			// a capability, in which devices differ
		case strings.Contains(line, "GID[") && !strings.Contains(line, "GID[  0]"):
			// the number of GIDs differs
		case m != nil:
			lines = append(lines, m[1]+m[2])
		default:
			lines = append(lines, line)
		}
	}
	return lines
}

// TestDevinfoLayout compares with ibv_devinfo itself, run on rdma_rxe: the same
// attributes in the same order and the same columns.
func TestDevinfoLayout(t *testing.T) {
	quiet(t)
	text, err := os.ReadFile("testdata/ibv_devinfo-v.txt")
	require.NoError(t, err)
	// rdma_rxe has no clock.
	want := strings.NewReplacer("completion_timestamp_mask not supported", "completion timestamp_mask:\t\t\t0",
		"core clock not supported", "hca_core_clock:\t\t\t0").Replace(string(text))
	status, stdout, stderr := run(t, fixed(t), "devinfo -v")
	require.Zero(t, status, stderr)
	require.Equal(t, layout(want), layout(stdout))
	require.Greater(t, len(layout(stdout)), 80)
}

func TestDevinfoJSON(t *testing.T) {
	quiet(t)
	_, stdout, _ := run(t, fixed(t), "devinfo -j")
	var d struct {
		HCA   string `json:"hca_id"`
		Ports []struct {
			State     string `json:"state"`
			ActiveMTU int    `json:"active_mtu"`
		} `json:"ports"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &d))
	require.Equal(t, "softrnic0", d.HCA)
	require.Equal(t, "PORT_ACTIVE", d.Ports[0].State)
	require.Equal(t, 4096, d.Ports[0].ActiveMTU)
}
