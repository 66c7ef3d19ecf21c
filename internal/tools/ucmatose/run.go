package ucmatose

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/tools/rdmacm"
	"github.com/softrnic/softrnic/internal/tools/watch"
)

// farewell is how long the peer may take to confirm the end of a connection.
// Nothing depends on it.
const farewell = 2 * time.Second

// Run is one run of the program, on either side.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	o.complete()
	r := runner{Options: &o, nodes: make([]*node, o.Connections)}
	part := r.server
	if o.Server != "" {
		part = r.client
	}
	err := part(ctx)
	status := 0
	if err != nil {
		status = 1
	}
	r.say("test complete")
	r.say("return status %d", status)
	return err
}

// runner is a run under way.
type runner struct {
	*Options
	nodes []*node
}

// say writes a line.
func (r *runner) say(format string, args ...any) { fmt.Fprintf(r.Out, format+"\n", args...) }

// each calls do for all nodes, in turn.
func (r *runner) each(do func(*node) error) error {
	for i, n := range r.nodes {
		if err := do(n); err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
	}
	return nil
}

// receive waits for all messages and looks at them.
func (r *runner) receive(ctx context.Context, alive *watch.Watch) error {
	r.say("receiving data transfers")
	return r.each(func(n *node) error {
		if err := n.complete(ctx, n.recvs, "received", alive.Beat); err != nil {
			return err
		}
		return n.check()
	})
}

// close frees the nodes.
func (r *runner) close() error {
	var errs []error
	for _, n := range r.nodes {
		if n != nil {
			errs = append(errs, n.close())
		}
	}
	return errors.Join(errs...)
}

// disconnect ends all connections.
func (r *runner) disconnect(ctx context.Context) {
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	_ = rdmacm.Each(bye, len(r.nodes), func(ctx context.Context, i int) error {
		if n := r.nodes[i]; n != nil && n.conn != nil {
			_ = n.conn.Disconnect(ctx) // a peer that does not confirm is gone, too
		}
		return nil
	})
}

// skipped tells of an address without an adapter.
func (o *Options) skipped(err error) { fmt.Fprintln(o.Log, err) }

// listen is how a server listens.
func (o *Options) listen() cm.ListenOptions {
	return cm.ListenOptions{PortSpace: o.PortSpace, NoUC: true}
}
