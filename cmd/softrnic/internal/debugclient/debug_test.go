package debugclient

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/debug"
)

func TestReport(t *testing.T) {
	dev := open(t, "nic")
	q := send(t, dev, 3)
	c := serve(t, dev, "127.0.0.1:0")
	r, err := c.Report(t.Context())
	require.NoError(t, err)
	require.Equal(t, debug.Process{PID: os.Getpid(), Command: filepath.Base(os.Args[0])}, r.Process)
	require.Equal(t, "nic", r.Device.Name)
	require.EqualValues(t, 3, r.Counters.SentPkts)
	require.Equal(t, q.Num(), r.QPs[0].Num)

	b, err := json.Marshal(r)
	require.NoError(t, err)
	var again Report
	require.NoError(t, json.Unmarshal(b, &again))
	require.Equal(t, r, again)

	// The connections are closed, so that no counter changes.
	now := dev.Inspect()
	now.Now = r.Now
	require.Equal(t, now.Device, r.Device)
	require.Equal(t, now.QPs, r.QPs)
}

func TestHistory(t *testing.T) {
	dev := open(t, "")
	q := send(t, dev, 1)
	c := serve(t, dev, "127.0.0.1:0")
	info, err := c.QP(t.Context(), q.Num())
	require.NoError(t, err)
	var what []string
	for _, e := range info.History {
		what = append(what, e.Text)
	}
	require.Contains(t, what, "state RTS")
	require.Contains(t, what, "-> UD_SEND_ONLY psn 0")
	_, err = c.QP(t.Context(), q.Num()^1)
	require.ErrorIs(t, err, ErrNoQP)

	for path, status := range map[string]int{
		"/qp/%d/history": 404, "/qp/0x1000000/history": 400, "/qp/-1/history": 400, "/qp/x/history": 400, "/qp/1": 404,
	} {
		got, text := get(t, c, "GET", strings.Replace(path, "%d", "2", 1))
		require.Equal(t, status, got, "%s: %s", path, text)
	}
}

// TestHost checks that requests that a web page could send are rejected.
func TestHost(t *testing.T) {
	c := serve(t, open(t, ""), "127.0.0.1:0")
	for host, status := range map[string]int{
		"localhost": 200, "localhost:9479": 200, "127.0.0.1:9479": 200, "[::1]:1": 200,
		"evil.example": 403, "evil.example:9479": 403, "192.0.2.1": 403, "localhost.evil.example:80": 403,
	} {
		got, _ := get(t, c, "GET", "/stat", func(r *http.Request) { r.Host = host })
		require.Equal(t, status, got, host)
	}
}

func TestIndex(t *testing.T) {
	c := serve(t, open(t, ""), "127.0.0.1:0")
	status, text := get(t, c, "GET", "/")
	require.Equal(t, 200, status)
	require.Contains(t, text, "/metrics")
	status, _ = get(t, c, "GET", "/nosuch")
	require.Equal(t, 404, status)
	status, _ = get(t, c, "POST", "/stat")
	require.Equal(t, 405, status)
}

func TestProfiles(t *testing.T) {
	c := serve(t, open(t, ""), "127.0.0.1:0")
	for path, want := range map[string]string{
		"/debug/pprof/":                    "goroutine (",
		"/debug/pprof/goroutine?debug=1":   "goroutine profile:",
		"/debug/pprof/heap":                "\x1f\x8b", // gzip
		"/debug/pprof/profile?seconds=.01": "\x1f\x8b",
		"/debug/pprof/trace?seconds=.01":   "go 1.",
	} {
		status, text := get(t, c, "GET", path)
		require.Equal(t, 200, status, path)
		require.Contains(t, text, want, path)
	}
	for path, want := range map[string]int{
		"/debug/pprof/nosuch": 404, "/debug/pprof/profile?seconds=-1": 400, "/debug/pprof/trace?seconds=NaN": 400,
		"/debug/pprof/profile?seconds=1e9": 400,
	} {
		status, _ := get(t, c, "GET", path)
		require.Equal(t, want, status, path)
	}
	_, pattern := http.DefaultServeMux.Handler(&http.Request{Method: "GET", URL: &url.URL{Path: "/debug/pprof/heap"}})
	require.Empty(t, pattern, "profiles are published on the default mux")
}

func TestUnanswered(t *testing.T) {
	c, err := NewClient("127.0.0.1:1")
	require.NoError(t, err)
	_, err = c.Report(t.Context())
	require.ErrorContains(t, err, "debug endpoint 127.0.0.1:1:")
	require.True(t, debug.IsRefused(err), "%v", err)
	_, err = NewClient("192.0.2.1:80")
	require.ErrorContains(t, err, "not a loopback address")
}
