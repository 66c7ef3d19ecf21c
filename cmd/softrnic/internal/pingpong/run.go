package pingpong

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/verbs"
)

// A Result has the measurements of a run.
type Result struct {
	Local   []Record
	Remote  []Record
	Bytes   int64 // both ways
	Iters   int
	Elapsed time.Duration
	Gaps    *Gaps // with Options.Times, if there were two receives
}

// Run runs a test on either side.
func Run(ctx context.Context, o Options) (Result, error) {
	if err := o.validate(); err != nil {
		return Result{}, err
	}
	o.setDefaults()
	r := runner{Options: &o}
	meet := r.runClient
	if o.Server == "" {
		meet = r.runServer
	}
	err := meet(ctx)
	var result Result
	if err == nil {
		result, err = r.runTest(ctx)
	}
	return result, errors.Join(err, r.close())
}

// A runner is the state of a run.
type runner struct {
	*Options
	endpoint *endpoint
	opened   verbs.Device // opened for the run
	peer     *oob.Conn    // open during the test if the peer keeps it open, or nil
}

// runClient is the client's side of the handshake.
func (r *runner) runClient(ctx context.Context) error {
	c, err := oob.Dial(ctx, netip.Addr{}, r.Server, r.Port, r.HandshakeTimeout)
	if err != nil {
		return err
	}
	r.peer = c
	if err := r.openEndpoint(c); err != nil {
		return err
	}
	if err := writeRecords(c, r.Kind.recordCount(), r.endpoint.local); err != nil {
		return err
	}
	remote, unfit := readRecords(c, r.Options)
	if unfit != nil && !errors.Is(unfit, errQueuePairs) {
		return unfit
	}
	if err := c.Write([]byte(doneMessage), "say that we are done"); err != nil {
		return err
	}
	if err := r.exchangeParams(); err != nil || unfit != nil {
		return cmp.Or(err, unfit)
	}
	return r.connectQPs(remote)
}

// exchangeParams exchanges parameters with the peer, and closes the connection if it has none.
func (r *runner) exchangeParams() error {
	exchanged, err := exchangeParams(r.peer, r.Options)
	if !exchanged {
		err = errors.Join(err, r.peer.Close())
		r.peer = nil
	}
	return err
}

// runServer is the server's side of the handshake, with the first client that completes it.
func (r *runner) runServer(ctx context.Context) error {
	l, err := oob.Listen(netip.Addr{}, r.Port)
	if err != nil {
		return err
	}
	defer l.Close()
	r.Listening(l.Port())
	if r.Device != nil {
		if err := r.openEndpoint(nil); err != nil {
			return err
		}
	}
	for {
		accept := func(ctx context.Context) (*oob.Conn, error) { return l.Accept(ctx, r.HandshakeTimeout) }
		hello := func(c *oob.Conn) (clientHello, error) {
			remote, err := readRecords(c, r.Options)
			if errors.Is(err, oob.ErrParams) || errors.Is(err, errQueuePairs) {
				return clientHello{mismatch: err}, nil
			}
			return clientHello{remote: remote}, err
		}
		c, g, err := oob.AcceptFirst(ctx, accept, hello, r.Dropped)
		if err != nil {
			return err
		}
		r.peer = c
		err = r.completeHandshake(c, g)
		var wrong *oob.PeerError
		if !errors.As(err, &wrong) || errors.Is(err, oob.ErrParams) {
			return err
		}
		r.Dropped(err)
		if err := r.close(); err != nil {
			return err
		}
	}
}

// A clientHello is the content of a client's first message: its queue pairs, or the reason why it
// does not fit.
type clientHello struct {
	remote   []Record
	mismatch error
}

// completeHandshake continues the handshake with a client whose queue pairs are known.
func (r *runner) completeHandshake(c *oob.Conn, g clientHello) error {
	if r.endpoint == nil {
		if err := r.openEndpoint(c); err != nil {
			return err
		}
	}
	records := r.Kind.recordCount()
	if errors.Is(g.mismatch, oob.ErrParams) {
		records = 1 // as it expects, to learn our terms
	}
	if g.mismatch == nil {
		if err := r.endpoint.connectQPs(g.remote); err != nil {
			return &oob.PeerError{Peer: c.Peer().String(), Op: "connect to its queue pairs", Err: err}
		}
	}
	if err := writeRecords(c, records, r.endpoint.local); err != nil {
		return err
	}
	if err := readDone(c, r.Options); errors.Is(err, oob.ErrParams) {
		_, _ = exchangeParams(c, r.Options) // for the client to report
		return err
	} else if err != nil {
		return cmp.Or(g.mismatch, err)
	}
	if err := r.exchangeParams(); err != nil || g.mismatch != nil {
		return cmp.Or(err, g.mismatch)
	}
	r.printRecords("remote", g.remote)
	return nil
}

// openEndpoint opens the endpoint on a device that the peer can reach.
func (r *runner) openEndpoint(c *oob.Conn) (err error) {
	dev := r.Device
	if dev == nil {
		if dev, err = r.Open(c.LocalIP()); err != nil {
			return err
		}
		r.opened = dev
	}
	if r.endpoint, err = newEndpoint(r.Options, dev); err != nil {
		return err
	}
	r.printRecords("local", r.endpoint.local)
	return nil
}

func (r *runner) connectQPs(remote []Record) error {
	r.printRecords("remote", remote)
	return r.endpoint.connectQPs(remote)
}

func (r *runner) printRecords(which string, records []Record) {
	for _, record := range records {
		io.WriteString(r.Out, record.formatLine(which, r.Kind == UD && which == "local"))
	}
}

// runTest exchanges the messages and writes the report.
func (r *runner) runTest(ctx context.Context) (Result, error) {
	watched, stop := r.watchPeer(ctx)
	result, err := r.endpoint.exchangeMessages(watched)
	stop()
	if err != nil && (ctx.Err() == nil || result.Iters == 0) {
		return Result{}, err
	}
	result.Local, result.Remote, result.Bytes = r.endpoint.local, r.endpoint.remote, 2*int64(r.Size)*int64(result.Iters)
	result.writeReport(r.Out)
	if err != nil { // the end of ctx, with a partial result
		return result, err
	}
	r.Linger(ctx)
	if !r.Check {
		return result, nil
	}
	// Not before the adapter leaves the memory alone: srq's peer may still send.
	message := r.endpoint.payload()
	if err := r.endpoint.close(); err != nil {
		return result, err
	}
	return result, r.endpoint.checkMessage(message)
}

// closeGrace is the time for the test to complete after the peer has closed the connection, which
// it does at its end.
const closeGrace = time.Second

// watchPeer returns a context that is canceled closeGrace after the peer has closed its TCP
// connection.
func (r *runner) watchPeer(ctx context.Context) (context.Context, func()) {
	peer := r.peer
	if peer == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		err := peer.ReadNoTimeout(make([]byte, 1), "wait for its end of the test")
		select {
		case <-time.After(closeGrace):
			cancel(err)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// writeReport writes the originals' two lines, and three about gaps.
func (r Result) writeReport(w io.Writer) {
	seconds, usec := r.Elapsed.Seconds(), float64(r.Elapsed)/1e3
	fmt.Fprintf(w, "%d bytes in %.2f seconds = %.2f Mbit/sec\n", r.Bytes, seconds, float64(r.Bytes)*8/usec)
	fmt.Fprintf(w, "%d iters in %.2f seconds = %.2f usec/iter\n", r.Iters, seconds, usec/float64(r.Iters))
	if r.Gaps != nil {
		r.Gaps.writeReport(w)
	}
}

// close closes the endpoint, the peer's connection and a device opened for the run.
func (r *runner) close() (err error) {
	if r.endpoint != nil {
		err = r.endpoint.close()
	}
	if r.opened != nil {
		err = errors.Join(err, r.opened.Close())
	}
	if r.peer != nil {
		err = errors.Join(err, r.peer.Close())
	}
	r.endpoint, r.opened, r.peer = nil, nil, nil
	return err
}
