package datacutter

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

var designs = []sdp.FlowControl{sdp.NIC, sdp.RDMA, sdp.Credit}

// overSDP is the Network of a stack.
type overSDP struct{ stack *sdp.Stack }

func (s overSDP) Listen(context.Context) (net.Listener, error) { return s.stack.Listen("sdp", ":0") }

func (s overSDP) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return s.stack.DialContext(ctx, "sdp", addr)
}

// newSDP opens an adapter with small buffers, which fill up soon.
func newSDP(t testing.TB, design sdp.FlowControl) Network {
	dev, err := rnic.Open(rnic.Options{})
	require.NoError(t, err)
	stack, err := sdp.New(dev, sdp.Options{FlowControl: design, Buffers: 4, BufferBytes: 1 << 10})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, stack.Close())
		require.NoError(t, dev.Close())
	})
	return overSDP{stack}
}

// A network may hold written data back until the next call, as RDMA-based flow control does. While read
// blocks sending a work to one copy of pass, it does not call on the connection where the end of the previous
// work is held back, which view needs before it receives units of the next work.
func TestNetworkThatWaitsForCalls(t *testing.T) {
	for _, design := range designs {
		t.Run(design.String(), func(t *testing.T) {
			read := always(func(_ context.Context, w *Work) error {
				for range 2000 {
					if err := w.Out("a").SendKey(uint64(w.Number), make([]byte, 64)); err != nil {
						return err
					}
				}
				return nil
			})
			g := chain(read, forward("a", "b"), new(bin).sink("b"))
			g.Streams[0].Policy = ByKey
			report, err := Run(guard(t), newSDP(t, design), Job{Group: g, Layout: Layout{
				{Filter: "read", Host: "x"}, {Filter: "pass", Host: "y", Copies: 2}, {Filter: "view", Host: "z"},
			}, Works: make([][]byte, 2)})
			require.NoError(t, err)
			require.EqualValues(t, 4000, report.Instances[0].In.Units+report.Instances[1].In.Units)
		})
	}
}
