package pingpong_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/internal/tools/pingpong"
	"github.com/softrnic/softrnic/internal/tools/toolstest"
	"github.com/softrnic/softrnic/rnic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is how a run ended.
type outcome struct {
	result pingpong.Result
	out    string
	err    error
}

// server is a server that waits.
type server struct {
	*toolstest.Drops
	port  int
	ended chan outcome
}

// serve starts a server on a device of its own.
func serve(t *testing.T, o pingpong.Options) *server {
	t.Helper()
	s := &server{Drops: toolstest.NewDrops(), ended: make(chan outcome, 1)}
	ready := make(chan int, 1)
	o.Port, o.Listening, o.Dropped = 0, func(port int) { ready <- port }, s.Add
	if o.Device == nil && o.Open == nil {
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
	case s.port = <-ready:
	case e := <-s.ended:
		require.NoError(t, e.err)
		t.Fatal("the server did not wait")
	}
	return s
}

func run(ctx context.Context, o pingpong.Options) outcome {
	var out bytes.Buffer
	o.Out = &out
	result, err := pingpong.Run(ctx, o)
	return outcome{result, out.String(), err}
}

// play runs a server and a client against each other.
func play(t *testing.T, s, c pingpong.Options) (server, client outcome) {
	t.Helper()
	end := toolstest.NewMeeting()
	s.Stay, c.Stay = end.Stay(0), end.Stay(1)
	host := serve(t, s)
	c.Server, c.Port = "127.0.0.1", host.port
	if c.Device == nil && c.Open == nil {
		c.Device = toolstest.Device(t, rnic.Options{})
	}
	clients := make(chan outcome)
	go func() {
		e := run(toolstest.Soon(t), c)
		end.Arrive(1)
		clients <- e
	}()
	server = <-host.ended
	end.Arrive(0)
	client = <-clients
	require.Zero(t, host.Len(), "clients were sent away")
	return server, client
}
