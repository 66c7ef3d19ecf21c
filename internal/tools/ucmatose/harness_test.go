package ucmatose_test

import (
	"bytes"
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/internal/tools/toolstest"
	"github.com/softrnic/softrnic/internal/tools/ucmatose"
	"github.com/softrnic/softrnic/rnic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is how a run ended.
type outcome struct {
	out string
	err error
}

func run(ctx context.Context, o ucmatose.Options) outcome {
	var out bytes.Buffer
	o.Out = &out
	err := ucmatose.Run(ctx, o)
	return outcome{out.String(), err}
}

// server is a server that waits.
type server struct {
	addr  netip.AddrPort
	ended chan outcome
}

// serve starts a server on a device of its own.
func serve(t *testing.T, o ucmatose.Options) *server {
	t.Helper()
	s := &server{ended: make(chan outcome, 1)}
	ready := make(chan netip.AddrPort, 1)
	o.Port, o.Listening = 0, func(list []netip.AddrPort) { ready <- list[0] }
	if o.Device == nil {
		o.Device = toolstest.Device(t, rnic.Options{})
	}
	ctx, cancel := context.WithCancel(toolstest.Soon(t))
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		s.ended <- run(ctx, o)
	}()
	select {
	case s.addr = <-ready:
	case e := <-s.ended:
		require.NoError(t, e.err)
		t.Fatal("the server did not wait")
	}
	return s
}

// client makes options a client's of a server.
func (s *server) client(t *testing.T, o ucmatose.Options) ucmatose.Options {
	o.Server, o.Port = s.addr.Addr().String(), int(s.addr.Port())
	if o.Device == nil {
		o.Device = toolstest.Device(t, rnic.Options{})
	}
	return o
}

// play runs a server and a client against each other.
func play(t *testing.T, so, co ucmatose.Options) (server, client outcome) {
	t.Helper()
	s := serve(t, so)
	client = run(toolstest.Soon(t), s.client(t, co))
	return <-s.ended, client
}
