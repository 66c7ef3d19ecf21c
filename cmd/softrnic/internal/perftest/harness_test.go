package perftest_test

import (
	"context"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/perftest"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// findTest returns the test of a name such as "send_bw".
func findTest(name string) perftest.Test {
	return perftest.Tests[slices.IndexFunc(perftest.Tests, func(t perftest.Test) bool { return t.String() == name })]
}

// defaults returns the default options of a test, with a short run.
func defaults(name string) perftest.Options {
	o := perftest.Defaults(findTest(name))
	o.Iters = 50
	o.QPTimeout = 19 // 2 s, because the machine may be busy
	if racesync.Enabled && name == "write_lat" {
		o.Size = 8 // shorter writes are plain copies, which the race detector reports
	}
	return o
}

// outcome is the result of a run.
type outcome struct {
	*perftest.Result
	out, log string
	err      error
}

// server is a server that waits for a client.
type server struct {
	*toolstest.Server[int, outcome]
	*toolstest.DroppedClients
}

// serve starts a server on a device of its own.
func serve(t *testing.T, o perftest.Options) server {
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

func run(ctx context.Context, o perftest.Options) outcome {
	var out, log toolstest.Buffer
	if o.Out == nil {
		o.Out = &out
	}
	o.Log = &log
	result, err := perftest.Run(ctx, o)
	return outcome{result, out.String(), log.String(), err}
}

// host starts a client whose server is simulated by the test.
func host(t *testing.T, o perftest.Options) (net.Conn, <-chan outcome) {
	return toolstest.RunClient(t, func(port int) outcome {
		o.Server, o.Port = "127.0.0.1", port
		return run(toolstest.Context(t), o)
	})
}

// runBoth runs a server and a client with each other.
func runBoth(t *testing.T, s, c perftest.Options) (server, client outcome) {
	t.Helper()
	end := toolstest.NewBarrier()
	s.Linger, c.Linger = end.Wait(0), end.Wait(1)
	if s.Device == nil && s.Open == nil {
		s.Device = toolstest.Device(t, rnic.Options{})
	}
	host := serve(t, s)
	c.Server, c.Port = "127.0.0.1", host.At
	if (c.RDMACM || c.CommRDMACM) && s.Device != nil {
		gid, err := s.Device.QueryGID(1, 0)
		require.NoError(t, err)
		c.Server = gid.GID.Addr().String()
	}
	if c.Device == nil && c.Open == nil {
		c.Device = toolstest.Device(t, rnic.Options{})
	}
	server, client = toolstest.RunPair(host.Server, end, func() outcome { return run(toolstest.Context(t), c) })
	require.Zero(t, host.Len(), "clients were sent away")
	return server, client
}

// change changes options of a test.
type change func(*perftest.Options)

func apply(o perftest.Options, changes ...change) perftest.Options {
	for _, c := range changes {
		c(&o)
	}
	return o
}

func connection(typ verbs.QPType) change { return func(o *perftest.Options) { o.Connection = typ } }
