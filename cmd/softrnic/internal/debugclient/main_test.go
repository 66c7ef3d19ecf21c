package debugclient

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a device, which is closed after the test. It has no service goroutine, so that no
// counter changes between two requests.
func open(t *testing.T, name string) *rnic.Device {
	t.Helper()
	dev, err := rnic.Open(rnic.Options{Name: name, NoService: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// serve opens dev's endpoint, which closes with dev, and a client of it.
func serve(t *testing.T, dev *rnic.Device, addr string) *Client {
	t.Helper()
	require.NoError(t, dev.ServeDebug(addr))
	c, err := NewClient(dev.DebugAddr())
	require.NoError(t, err)
	return c
}

// send sends n datagrams of a byte from dev to itself and returns the queue
// pair.
func send(t *testing.T, dev *rnic.Device, n int) verbs.QP {
	t.Helper()
	pd, err := dev.AllocPD()
	require.NoError(t, err)
	cq, err := dev.CreateCQ(n)
	require.NoError(t, err)
	q, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: n, MaxInlineData: 8}})
	require.NoError(t, err)
	require.NoError(t, verbs.ActivateUD(q, 7, 0))
	self, err := verbs.LocalEndpoint(dev, q, 0)
	require.NoError(t, err)
	ah, err := pd.CreateAH(verbs.AHAttr{DGID: self.GID, UDPPort: self.UDPPort})
	require.NoError(t, err)
	var wc [1]verbs.WC
	for range n {
		_, err = q.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled | verbs.SendInline, InlineData: []byte{1},
			AH: ah, RemoteQPN: q.Num(), RemoteQKey: 7}})
		require.NoError(t, err)
		_, err := cq.PollWait(t.Context(), wc[:])
		require.NoError(t, err)
	}
	return q
}

// get requests a path and returns the status and the text.
func get(t *testing.T, c *Client, method, path string, change ...func(*http.Request)) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, "http://localhost"+path, nil)
	require.NoError(t, err)
	for _, f := range change {
		f(req)
	}
	res, err := c.http.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	var b bytes.Buffer
	_, err = io.Copy(&b, res.Body)
	require.NoError(t, err)
	return res.StatusCode, b.String()
}

// shortDir returns a temporary directory whose name is short enough for a socket in it, which that
// of t.TempDir is not on macOS.
func shortDir(t *testing.T) string {
	t.Helper()
	base := ""
	if runtime.GOOS == "darwin" {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, "s")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
