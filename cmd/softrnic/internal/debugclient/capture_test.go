package debugclient

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/rnic"
)

// camera is a device that simulates captures.
type camera struct {
	*rnic.Device
	started chan string
	stopped chan struct{}
	fail    error
}

func (c *camera) Stat() any             { return Report{debug.AboutSelf(), c.Inspect()} }
func (c *camera) QP(uint32) (any, bool) { return nil, false }

func (c *camera) StartCapture(path string) error {
	if c.fail != nil {
		return c.fail
	}
	c.started <- path
	return nil
}

func (c *camera) StopCapture() error {
	c.stopped <- struct{}{}
	return c.fail
}

func newCamera(t *testing.T) (*camera, *Client) {
	c := &camera{Device: open(t, ""), started: make(chan string, 1), stopped: make(chan struct{}, 1)}
	return c, show(t, c, "unix:"+filepath.Join(shortDir(t), "s"))
}

// show opens an endpoint, which is closed after the test, and a client of it.
func show(t *testing.T, dev debug.Device, addr string) *Client {
	t.Helper()
	s, err := debug.Serve(dev, addr)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	c, err := NewClient(s.Addr())
	require.NoError(t, err)
	return c
}

func TestCapture(t *testing.T) {
	dev, client := newCamera(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	running := make(chan struct{})
	go func() { done <- client.Capture(ctx, "/tmp/a.pcapng", func() { close(running) }) }()
	<-running
	require.Equal(t, "/tmp/a.pcapng", <-dev.started)

	err := client.Capture(t.Context(), "/tmp/b.pcapng", func() { t.Error("two at once") })
	require.ErrorContains(t, err, "a capture to /tmp/a.pcapng is running")
	stop()
	require.NoError(t, <-done)
	<-dev.stopped

	status, text := get(t, client, "DELETE", "/capture")
	require.Equal(t, 404, status, text)
	err = client.Capture(t.Context(), "relative.pcapng", nil)
	require.ErrorContains(t, err, "want an absolute path")
	dev.fail = errors.New("disk full")
	require.ErrorContains(t, client.Capture(t.Context(), "/tmp/c.pcapng", nil), "disk full")
}

// TestCaptureInterruptedEarly checks that an interrupted capture does not wait for a process that
// does not reply.
func TestCaptureInterruptedEarly(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err := NewClient(l.Addr().String())
	require.NoError(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	silent := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			silent <- c
		}
		interrupt()
	}()
	err = client.Capture(ctx, "/tmp/a.pcapng", func() { t.Error("it cannot have started") })
	require.ErrorIs(t, err, context.Canceled)
	(<-silent).Close()
}

// TestCaptureEndsWithClient checks that a capture ends when its client closes the connection, as a
// killed tool does.
func TestCaptureEndsWithClient(t *testing.T) {
	dev, client := newCamera(t)
	ctx, hangUp := context.WithCancel(t.Context())
	body, err := client.doRequest(ctx, "POST", "/capture?path=/tmp/a.pcapng")
	require.NoError(t, err)
	<-dev.started
	hangUp()
	body.Close()
	<-dev.stopped
}

// TestCloseEndsRequests closes a server with a request in progress.
func TestCloseEndsRequests(t *testing.T) {
	dev := &camera{Device: open(t, ""), started: make(chan string, 1), stopped: make(chan struct{}, 1)}
	s, err := debug.Serve(dev, "unix:"+filepath.Join(shortDir(t), "s"))
	require.NoError(t, err)
	client, err := NewClient(s.Addr())
	require.NoError(t, err)
	body, err := client.doRequest(t.Context(), "POST", "/capture?path=/tmp/a.pcapng")
	require.NoError(t, err)
	defer body.Close()
	<-dev.started
	require.NoError(t, s.Close())
	<-dev.stopped
	require.NoError(t, s.Close())
	_, err = client.Report(t.Context())
	require.Error(t, err)
}

// TestCaptureStopFails checks that the client is notified if the capture file is incomplete.
func TestCaptureStopFails(t *testing.T) {
	dev, client := newCamera(t)
	ctx, stop := context.WithCancel(t.Context())
	err := client.Capture(ctx, "/tmp/a.pcapng", func() {
		<-dev.started
		dev.fail = errors.New("disk full")
		stop()
	})
	require.ErrorContains(t, err, "disk full")
	<-dev.stopped
}

func TestCaptureRefused(t *testing.T) {
	dev, _ := newCamera(t)
	tcp := show(t, dev, "127.0.0.1:0")
	require.ErrorContains(t, tcp.Capture(t.Context(), "/tmp/a.pcapng", nil), "captures need a Unix socket")
	require.Empty(t, dev.started)
}
