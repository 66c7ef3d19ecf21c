package ucmatose

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
)

// server waits for all connections and sends first.
func (r *runner) server(ctx context.Context) (err error) {
	r.Say("cmatose: starting server")
	bind, err := r.Own(ctx)
	if err != nil {
		return err
	}
	s, err := rdmacm.Listen(r.DeviceSource, bind, uint16(r.Port), r.listen(), r.Skipped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.nodes.Close(), s.Close()) }()
	r.Listening(s.Addrs())
	first, err := s.Accept(ctx)
	if err != nil {
		return err
	}
	playing, alive, stop := rdmacm.StartTest(ctx, r.IdleTimeout, first.Endpoint.Manager, first.Request.RemoteAdapter())
	defer stop()
	defer r.disconnect(ctx)
	if err := r.accept(playing, s, first, alive); err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	if r.Count > 0 {
		if err := r.serve(playing, alive); err != nil {
			return err
		}
		r.Say("data transfers complete")
	}
	r.Say("cmatose: disconnecting")
	r.disconnect(ctx)
	r.Say("disconnected")
	return nil
}

// accept takes connections until all are there.
func (r *runner) accept(ctx context.Context, s *rdmacm.Server[*cm.Request], a rdmacm.Incoming[*cm.Request], alive *watch.Watch) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calls sync.WaitGroup
	var err error
	for i := 0; ; i++ {
		this := a
		calls.Go(func() {
			if err := r.acceptOne(ctx, i, this); err != nil {
				cancel(fmt.Errorf("connection %d: %w", i, err))
			}
			alive.Beat()
		})
		if i == r.Connections-1 {
			break
		}
		if a, err = s.Accept(ctx); err != nil {
			err = rdmacm.ExplainIdle(err, "%d of %d connections established; give both sides the same -c", i+1, r.Connections)
			cancel(err)
			break
		}
		alive.Beat()
	}
	calls.Wait()
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (r *runner) acceptOne(ctx context.Context, i int, a rdmacm.Incoming[*cm.Request]) error {
	if err := r.RejectMisfit(a.Request, test); err != nil {
		return err
	}
	n, err := newNode(r.Options, i, a.Endpoint.Device)
	if err != nil {
		r.Say("cmatose: failing connection request")
		return errors.Join(err, a.Request.Reject(cm.NoResources, nil))
	}
	r.nodes[i] = n
	n.conn, err = a.Request.Accept(ctx, n.qp, cm.AcceptOptions{ConnectOptions: n.connection(), Prepare: n.prepare})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// serve sends all messages and receives as many.
func (r *runner) serve(ctx context.Context, alive *watch.Watch) error {
	r.Say("initiating data transfers")
	if err := r.nodes.Each((*node).postSends); err != nil {
		return err
	}
	r.Say("completing sends")
	if err := r.nodes.Each(func(n *node) error { return n.complete(ctx, n.sends, "sent", alive.Beat) }); err != nil {
		return err
	}
	return r.receive(ctx, alive)
}
