package pingpong_test

import (
	"bytes"
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/pingpong"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/rnic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is the result of a run.
type outcome struct {
	result pingpong.Result
	out    string
	err    error
}

// server is a server that waits for a client.
type server struct {
	*toolstest.Server[int, outcome]
	*toolstest.DroppedClients
}

// serve starts a server on a device of its own.
func serve(t *testing.T, o pingpong.Options) server {
	t.Helper()
	drops := toolstest.NewDroppedClients()
	if o.Device == nil && o.Open == nil {
		o.Device = toolstest.Device(t, rnic.Options{})
	}
	return server{toolstest.Serve(t, func(ctx context.Context, listening func(int)) outcome {
		o.Port, o.Listening, o.Dropped = 0, listening, drops.Add
		return run(ctx, o)
	}), drops}
}

func run(ctx context.Context, o pingpong.Options) outcome {
	var out bytes.Buffer
	o.Out = &out
	result, err := pingpong.Run(ctx, o)
	return outcome{result, out.String(), err}
}

// host starts a client whose server is simulated by the test.
func host(t *testing.T, o pingpong.Options) (net.Conn, <-chan outcome) {
	return toolstest.RunClient(t, func(port int) outcome {
		o.Server, o.Port = "127.0.0.1", port
		return run(toolstest.Context(t), o)
	})
}

// runBoth runs a server and a client with each other.
func runBoth(t *testing.T, s, c pingpong.Options) (server, client outcome) {
	t.Helper()
	end := toolstest.NewBarrier()
	s.Linger, c.Linger = end.Wait(0), end.Wait(1)
	host := serve(t, s)
	c.Server, c.Port = "127.0.0.1", host.At
	if c.Device == nil && c.Open == nil {
		c.Device = toolstest.Device(t, rnic.Options{})
	}
	server, client = toolstest.RunPair(host.Server, end, func() outcome { return run(toolstest.Context(t), c) })
	require.Zero(t, host.Len(), "clients were sent away")
	return server, client
}
