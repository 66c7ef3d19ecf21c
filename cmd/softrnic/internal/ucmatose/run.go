package ucmatose

import (
	"context"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
)

// farewell is the time for the peer to confirm a disconnect.
const farewell = 2 * time.Second

// Run runs the program on either side.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	r := runner{Options: &o, nodes: make(cmtool.Nodes[*node], o.Connections)}
	return o.Run(ctx, r.server, r.client)
}

// A runner is the state of a run.
type runner struct {
	*Options
	nodes cmtool.Nodes[*node]
}

// receive waits for all messages and looks at them.
func (r *runner) receive(ctx context.Context, alive *watch.Watch) error {
	r.Say("receiving data transfers")
	return r.nodes.Each(func(n *node) error {
		if err := n.complete(ctx, n.recvs, "received", alive.Beat); err != nil {
			return err
		}
		return n.check()
	})
}

// disconnect ends all connections.
func (r *runner) disconnect(ctx context.Context) {
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	_ = rdmacm.ForEach(bye, len(r.nodes), func(ctx context.Context, i int) error {
		if n := r.nodes[i]; n != nil && n.conn != nil {
			_ = n.conn.Disconnect(ctx, nil) // a peer that does not confirm is gone, too
		}
		return nil
	})
}

// listen returns the options of a server's listener.
func (o *Options) listen() cm.ListenOptions {
	return cm.ListenOptions{PortSpace: o.PortSpace, NoUC: true}
}
