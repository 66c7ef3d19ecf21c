// Package cmtool is librdmacm's ucmatose and udaddy, on either side against the originals. They
// differ in the transport service of their queue pairs.
//
//	o := cmtool.Defaults(cmtool.RC)
//	o.Server, o.Connections = "192.0.2.2", 16 // "" is the server
//	o.Open = func(at netip.AddrPort) (verbs.Device, error) { ... }
//	o.Out = os.Stdout
//	err := cmtool.Run(ctx, o)
//
// # Protocol
//
// In ucmatose (RC) a client makes a number of connections by RDMA-CM, port 7471. When all are
// established the server sends a number of messages on each; the client receives all of them
// and sends as many back, from the memory in which they have arrived; the server disconnects.
//
// In udaddy (UD) a client learns by SIDR_REQ and SIDR_REP of RDMA-CM, port 7174, a queue pair of
// the server for each of its own. The client sends datagrams there, each with the number of its
// queue pair as immediate data. When all have arrived the server sends as many back: its receive
// buffer from the start, which is the 40 bytes of the GRH and then as much of the client's
// datagram as fits.
//
// # Differences from the originals
//
// A wait without progress ends with an error after IdleTimeout, which counts the messages
// received. Payloads are checked: the messages of the first sender must be equal on a connection,
// and it must get back the bytes that it has sent. Datagrams of other senders do not count.
package cmtool

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
)

// disconnectTimeout is the time for the peer to confirm a disconnect.
const disconnectTimeout = 2 * time.Second

// Run runs the program on either side and writes its status to o.Out.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	o.complete()
	r := runner{&o, make([]*node, o.Connections)}
	var err error
	switch {
	case o.Server != "":
		err = r.client(ctx)
	case o.Service == UD:
		err = serve(ctx, &r, udService)
	default:
		err = serve(ctx, &r, rcService)
	}
	status := 0
	if err != nil {
		status = 1
	}
	r.printLine("test complete")
	r.printLine("return status %d", status)
	return err
}

// A runner is the state of a run.
type runner struct {
	*Options
	nodes []*node // by the number of the connection; nil if it has none yet
}

// printLine writes a line of output.
func (r *runner) printLine(format string, args ...any) { fmt.Fprintf(r.Out, format+"\n", args...) }

// serve waits for all connections and exchanges messages.
func serve[R rdmacm.Request](ctx context.Context, r *runner, service service[R]) (err error) {
	r.printLine("%s: starting server", r.name())
	bind, err := r.resolveBind(ctx)
	if err != nil {
		return err
	}
	skipped := func(err error) { fmt.Fprintln(r.Log, err) }
	s, err := service.listen(r.DeviceSource, bind, uint16(r.Port), cm.ListenOptions{PortSpace: r.PortSpace, NoUC: true}, skipped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.closeNodes(), s.Close()) }()
	r.Listening(s.Addrs())
	first, err := s.Accept(ctx)
	if err != nil {
		return err
	}
	running, alive, stop := rdmacm.StartTest(ctx, r.IdleTimeout, first.Endpoint.Manager, service.adapter(first.Request))
	defer stop()
	defer r.disconnect(ctx)
	if err := acceptAll(running, r, service, s, first, alive); err != nil {
		return err
	}
	if err := r.exchange(running, alive); err != nil || r.Service == UD {
		return err
	}
	r.printLine("%s: disconnecting", r.name())
	r.disconnect(ctx)
	r.printLine("disconnected")
	return nil
}

// acceptAll accepts connections until all are established. A server of connections accepts no more.
func acceptAll[R rdmacm.Request](ctx context.Context, r *runner, service service[R], s *rdmacm.Server[R], in rdmacm.Incoming[R], alive *watch.Watch) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calls sync.WaitGroup
	var err error
	for i := 0; ; i++ {
		this := in
		calls.Go(func() {
			if err := accept(ctx, r, service, i, this); err != nil {
				cancel(fmt.Errorf("connection %d: %w", i, err))
			}
			alive.Beat()
		})
		if i == r.Connections-1 {
			break
		}
		if in, err = s.Accept(ctx); err != nil {
			err = rdmacm.ExplainIdle(err, "%d of %d connections established; give both sides the same -c", i+1, r.Connections)
			cancel(err)
			break
		}
		alive.Beat()
	}
	calls.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil || r.Service == UD { // a client may repeat a SIDR_REQ whose reply was lost
		return err
	}
	return s.Stop()
}

// accept accepts the request for connection i.
func accept[R rdmacm.Request](ctx context.Context, r *runner, service service[R], i int, in rdmacm.Incoming[R]) error {
	if err := rdmacm.RejectMismatch(in.Request, func(oob.Params) oob.Params { return r.params() }); err != nil {
		return err
	}
	n, err := newNode(r.Options, i, in.Endpoint.Device)
	if err != nil {
		r.printLine("%s: failing connection request", r.name())
		return errors.Join(err, service.reject(in.Request))
	}
	r.nodes[i] = n
	if err = service.accept(n, ctx, in.Request); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// client makes all connections and exchanges messages.
func (r *runner) client(ctx context.Context) (err error) {
	r.printLine("%s: starting client", r.name())
	e, addr, err := r.openClient(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.closeNodes(), e.Close()) }()
	defer r.disconnect(ctx)
	r.printLine("%s: connecting", r.name())
	if err := r.dial(ctx, e, addr); err != nil {
		return err
	}
	running, alive, stop := rdmacm.StartTest(ctx, r.IdleTimeout, e.Manager, r.nodes[0].adapter)
	defer stop()
	if err := r.exchange(running, alive); err != nil {
		return err
	}
	return r.forEach(func(n *node) error { return n.awaitDisconnect(running, alive) })
}

// resolveBind returns the address to bind to, or the zero Addr.
func (r *runner) resolveBind(ctx context.Context) (netip.Addr, error) {
	bind, err := rdmacm.ResolveBind(ctx, r.Bind, r.Format)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("-b: %w", err)
	}
	return bind, nil
}

// openClient opens a client's endpoint and returns the server's address. The caller must close
// the endpoint.
func (r *runner) openClient(ctx context.Context) (*rdmacm.Endpoint, netip.AddrPort, error) {
	addr, err := rdmacm.Resolve(ctx, r.Server, r.Format)
	if err != nil {
		return nil, netip.AddrPort{}, fmt.Errorf("-s: %w", err)
	}
	bind, err := r.resolveBind(ctx)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	e, err := rdmacm.OpenClient(r.DeviceSource, addr, bind)
	return e, netip.AddrPortFrom(addr, uint16(r.Port)), err
}

// dial makes all connections.
func (r *runner) dial(ctx context.Context, e *rdmacm.Endpoint, addr netip.AddrPort) error {
	var private []byte
	if !r.NoTerms {
		private = rdmacm.EncodeParams(r.params())
	}
	return rdmacm.ForFirstThenEach(ctx, r.Connections, func(ctx context.Context, i int) error {
		n, err := newNode(r.Options, i, e.Device)
		if err != nil {
			return err
		}
		r.nodes[i] = n
		dial := n.dialRC
		if r.Service == UD {
			dial = n.dialUD
		}
		if err := dial(ctx, e.Manager, addr, private); err != nil {
			return fmt.Errorf("connection %d: %w", i, rdmacm.ExplainRejection(err, r.params()))
		}
		return nil
	})
}

// exchange sends and receives all messages. The server sends first on connections, the client
// first as datagrams.
func (r *runner) exchange(ctx context.Context, alive *watch.Watch) error {
	if r.Count == 0 {
		return nil
	}
	first := r.sendsFirst()
	if first {
		r.printLine("initiating data transfers")
		if err := r.forEach((*node).postSends); err != nil {
			return err
		}
		if r.Service == RC {
			r.printLine("completing sends")
			if err := r.forEach(func(n *node) error { return n.awaitSends(ctx, alive.Beat) }); err != nil {
				return err
			}
		}
	}
	r.printLine("receiving data transfers")
	if err := r.forEach(func(n *node) error { return n.awaitReceives(ctx, alive.Beat) }); err != nil {
		return err
	}
	if !first {
		r.printLine("sending replies")
		if err := r.forEach((*node).postSends); err != nil {
			return err
		}
		if r.Service == UD { // a connection has the server's disconnect to wait for
			if err := r.forEach(func(n *node) error { return n.awaitSends(ctx, alive.Beat) }); err != nil {
				return err
			}
		}
	}
	r.printLine("data transfers complete")
	return nil
}

// forEach calls do for all nodes in order until one fails.
func (r *runner) forEach(do func(*node) error) error {
	for i, n := range r.nodes {
		if err := do(n); err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
	}
	return nil
}

// disconnect ends all connections.
func (r *runner) disconnect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), disconnectTimeout)
	defer cancel()
	_ = rdmacm.ForEach(ctx, len(r.nodes), func(ctx context.Context, i int) error {
		if n := r.nodes[i]; n != nil && n.conn != nil {
			_ = n.conn.Disconnect(ctx, nil) // a peer that does not confirm is gone, too
		}
		return nil
	})
}

// closeNodes closes the nodes that exist.
func (r *runner) closeNodes() error {
	var errs []error
	for _, n := range r.nodes {
		if n != nil {
			errs = append(errs, n.Close())
		}
	}
	return errors.Join(errs...)
}
