package cmtool_test

import (
	"bytes"
	"context"
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/rnic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is the result of a run.
type outcome struct {
	out string
	err error
}

func run(ctx context.Context, o cmtool.Options) outcome {
	var out bytes.Buffer
	o.Out = &out
	err := cmtool.Run(ctx, o)
	return outcome{out.String(), err}
}

// serve starts a server on a device of its own.
func serve(t *testing.T, o cmtool.Options) *toolstest.Server[netip.AddrPort, outcome] {
	t.Helper()
	if o.Device == nil {
		o.Device = toolstest.Device(t, rnic.Options{})
	}
	return toolstest.Serve(t, func(ctx context.Context, listening func(netip.AddrPort)) outcome {
		o.Port, o.Listening = 0, func(list []netip.AddrPort) { listening(list[0]) }
		return run(ctx, o)
	})
}

// towards returns options for a client of the server at an address.
func towards(t *testing.T, at netip.AddrPort, o cmtool.Options) cmtool.Options {
	o.Server, o.Port = at.Addr().String(), int(at.Port())
	if o.Device == nil {
		o.Device = toolstest.Device(t, rnic.Options{})
	}
	return o
}

// runBoth runs a server and a client with each other.
func runBoth(t *testing.T, so, co cmtool.Options) (server, client outcome) {
	t.Helper()
	s := serve(t, so)
	client = run(toolstest.Context(t), towards(t, s.At, co))
	return <-s.Ended, client
}
