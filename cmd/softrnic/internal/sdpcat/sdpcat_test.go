package sdpcat_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/sdpcat"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen starts a listener, and returns its address and its result.
func listen(t *testing.T, ctx context.Context, o sdpcat.Options) (sockets.Addr, <-chan error) {
	t.Helper()
	ready := make(chan net.Addr, 1)
	o.DeviceSource, o.Listen, o.Addr = toolstest.Anywhere, true, sockets.Addr{Network: "sdp"}
	o.Listening = func(a net.Addr) { ready <- a }
	ended := make(chan error, 1)
	go func() { ended <- sdpcat.Run(ctx, o) }()
	select {
	case a := <-ready:
		p, err := sockets.ParseAddr(sockets.FormatAddr(a))
		require.NoError(t, err)
		return p, ended
	case err := <-ended:
		t.Fatal(err)
	}
	panic("not reached")
}

// TestBothWays transfers different amounts in the two directions.
func TestBothWays(t *testing.T) {
	for _, d := range []sdp.FlowControl{sdp.NIC, sdp.RDMA, sdp.Credit} {
		t.Run(d.String(), func(t *testing.T) {
			there, back := make([]byte, 5_000_001), make([]byte, 70_000)
			source := rand.NewChaCha8([32]byte{})
			_, _ = source.Read(there)
			_, _ = source.Read(back)
			var far, near, farLog, nearLog bytes.Buffer
			at, ended := listen(t, toolstest.Context(t), sdpcat.Options{In: bytes.NewReader(back), Out: &far, Log: &farLog})
			err := sdpcat.Run(toolstest.Context(t), sdpcat.Options{
				DeviceSource: toolstest.Anywhere, Addr: at, In: bytes.NewReader(there), Out: &near, Log: &nearLog, SDP: sdp.Options{FlowControl: d},
			})
			require.NoError(t, err)
			require.NoError(t, <-ended)
			require.True(t, bytes.Equal(there, far.Bytes()))
			require.True(t, bytes.Equal(back, near.Bytes()))
			require.Regexp(t, `^listening at sdp:\S+\nconnected to sdp:\S+\n`, farLog.String())
			require.Contains(t, nearLog.String(), "connected to "+at.String()+"\n")
			require.Contains(t, nearLog.String(), "sent 5000001 bytes\n")
			require.Contains(t, nearLog.String(), "received 70000 bytes\n")
		})
	}
}

// TestHalfClose checks that one end continues to send after the peer has closed its direction.
func TestHalfClose(t *testing.T) {
	var far bytes.Buffer
	at, ended := listen(t, toolstest.Context(t), sdpcat.Options{In: strings.NewReader("bye"), Out: &far})
	r, w := io.Pipe()
	heard, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- sdpcat.Run(toolstest.Context(t), sdpcat.Options{DeviceSource: toolstest.Anywhere, Addr: at, In: r, Out: out})
		out.Close()
	}()
	bye := make([]byte, 3)
	_, err := io.ReadFull(heard, bye)
	require.NoError(t, err)
	_, err = w.Write([]byte("one more thing"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, <-done)
	require.NoError(t, <-ended)
	require.Equal(t, "one more thing", far.String())
}

// TestEnd checks that canceling the context ends Run in every state, while In may stay blocked.
func TestEnd(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(toolstest.Context(t))
	at, ended := listen(t, ctx, sdpcat.Options{In: r, Out: io.Discard})
	cancel() // before a client has connected
	require.ErrorIs(t, <-ended, context.Canceled)

	ctx, cancel = context.WithCancel(toolstest.Context(t))
	at, ended = listen(t, ctx, sdpcat.Options{In: io.MultiReader(strings.NewReader("hello"), r), Out: io.Discard})
	out := &first{at: make(chan struct{})}
	peer := make(chan error, 1)
	go func() {
		peer <- sdpcat.Run(toolstest.Context(t), sdpcat.Options{DeviceSource: toolstest.Anywhere, Addr: at, In: r, Out: out})
	}()
	<-out.at
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.ErrorIs(t, <-peer, sdp.ErrReset)
}

// first is notified of the first write.
type first struct{ at chan struct{} }

func (f *first) Write(p []byte) (int, error) {
	close(f.at)
	return len(p), nil
}

// TestRefused checks that the error names the side that rejects the connection.
func TestRefused(t *testing.T) {
	err := sdpcat.Run(t.Context(), sdpcat.Options{})
	require.ErrorContains(t, err, "device: none given")
	dev := toolstest.Device(t, rnic.Options{})
	s, err := sdp.New(dev, sdp.Options{})
	require.NoError(t, err)
	defer s.Close()
	l, err := s.Listen("sdp", ":0")
	require.NoError(t, err)
	at, err := sockets.ParseAddr(sockets.FormatAddr(l.Addr()))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	err = sdpcat.Run(toolstest.Context(t), sdpcat.Options{DeviceSource: toolstest.Anywhere, Addr: at, In: strings.NewReader(""), Out: io.Discard})
	require.ErrorContains(t, err, "connection refused")
	require.ErrorContains(t, err, at.String()[len("sdp:"):])
}
