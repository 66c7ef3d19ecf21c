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

// Result is what a run came to.
type Result struct {
	Local   []Record
	Remote  []Record
	Bytes   int64 // both ways
	Iters   int
	Elapsed time.Duration
}

// Run is one run of the program, on either side.
func Run(ctx context.Context, o Options) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, err
	}
	o.complete()
	r := runner{Options: &o}
	meet := r.join
	if o.Server == "" {
		meet = r.host
	}
	err := meet(ctx)
	var result Result
	if err == nil {
		result, err = r.play(ctx)
	}
	return result, errors.Join(err, r.close())
}

// runner is a run under way.
type runner struct {
	*Options
	end    *end
	opened verbs.Device // by us
	peer   *oob.Conn    // kept during the test if the peer keeps it, too; or nil
}

// join meets the server.
func (r *runner) join(ctx context.Context) error {
	c, err := oob.Dial(ctx, netip.Addr{}, r.Server, r.Port, r.Patience)
	if err != nil {
		return err
	}
	r.peer = c
	if err := r.prepare(c); err != nil {
		return err
	}
	if err := writeRecords(c, r.Kind.records(), r.end.local); err != nil {
		return err
	}
	remote, unfit := readRecords(c, r.Options)
	if unfit != nil && !errors.Is(unfit, errQueuePairs) {
		return unfit
	}
	if err := c.Write([]byte(done), "say that we are done"); err != nil {
		return err
	}
	if err := r.agree(); err != nil || unfit != nil {
		return cmp.Or(err, unfit)
	}
	return r.connect(remote)
}

// agree exchanges terms with the peer, and closes the connection if it has none.
func (r *runner) agree() error {
	exchanged, err := exchangeTerms(r.peer, r.Options)
	if !exchanged {
		err = errors.Join(err, r.peer.Close())
		r.peer = nil
	}
	return err
}

// host meets the first client that does its part.
func (r *runner) host(ctx context.Context) error {
	l, err := oob.Listen(netip.Addr{}, r.Port)
	if err != nil {
		return err
	}
	defer l.Close()
	r.Listening(l.Port())
	if r.Device != nil {
		if err := r.prepare(nil); err != nil {
			return err
		}
	}
	for {
		accept := func(ctx context.Context) (*oob.Conn, error) { return l.Accept(ctx, r.Patience) }
		hello := func(c *oob.Conn) (greeting, error) {
			remote, err := readRecords(c, r.Options)
			if errors.Is(err, oob.ErrTerms) || errors.Is(err, errQueuePairs) {
				return greeting{unfit: err}, nil
			}
			return greeting{remote: remote}, err
		}
		c, g, err := oob.First(ctx, accept, hello, r.Dropped)
		if err != nil {
			return err
		}
		r.peer = c
		err = r.receive(c, g)
		var wrong *oob.PeerError
		if !errors.As(err, &wrong) || errors.Is(err, oob.ErrTerms) {
			return err
		}
		r.Dropped(err)
		if err := r.close(); err != nil {
			return err
		}
	}
}

// A greeting is the result of a client's first message: its queue pairs, or the reason
// why it does not fit.
type greeting struct {
	remote []Record
	unfit  error
}

// receive completes the handshake with a client that has told its queue pairs.
func (r *runner) receive(c *oob.Conn, g greeting) error {
	if r.end == nil {
		if err := r.prepare(c); err != nil {
			return err
		}
	}
	records := r.Kind.records()
	if errors.Is(g.unfit, oob.ErrTerms) {
		records = 1 // as it expects, to learn our terms
	}
	if g.unfit == nil {
		if err := r.end.connect(g.remote); err != nil {
			return &oob.PeerError{Peer: c.Peer().String(), Doing: "connect to its queue pairs", Err: err}
		}
	}
	if err := writeRecords(c, records, r.end.local); err != nil {
		return err
	}
	if err := readDone(c, r.Options); errors.Is(err, oob.ErrTerms) {
		_, _ = exchangeTerms(c, r.Options) // for the client to report
		return err
	} else if err != nil {
		return cmp.Or(g.unfit, err)
	}
	if err := r.agree(); err != nil || g.unfit != nil {
		return cmp.Or(err, g.unfit)
	}
	r.print("remote", g.remote)
	return nil
}

// prepare makes our side, on a device that the peer can reach.
func (r *runner) prepare(c *oob.Conn) (err error) {
	dev := r.Device
	if dev == nil {
		if dev, err = r.Open(c.LocalIP()); err != nil {
			return err
		}
		r.opened = dev
	}
	if r.end, err = newEnd(r.Options, dev); err != nil {
		return err
	}
	r.print("local", r.end.local)
	return nil
}

func (r *runner) connect(remote []Record) error {
	r.print("remote", remote)
	return r.end.connect(remote)
}

func (r *runner) print(which string, records []Record) {
	for _, record := range records {
		io.WriteString(r.Out, record.line(which, r.Kind == UD && which == "local"))
	}
}

// play exchanges the messages and reports.
func (r *runner) play(ctx context.Context) (Result, error) {
	watched, stop := r.watchPeer(ctx)
	iters, elapsed, err := r.end.play(watched)
	stop()
	if err != nil && (ctx.Err() == nil || iters == 0) {
		return Result{}, err
	}
	result := Result{r.end.local, r.end.remote, 2 * int64(r.Size) * int64(iters), iters, elapsed}
	result.report(r.Out)
	if err != nil { // the end of ctx, which leaves what was measured so far
		return result, err
	}
	r.Stay(ctx)
	if !r.Check {
		return result, nil
	}
	// Not before the adapter leaves the memory alone: srq's peer may still send.
	message := r.end.message()
	if err := r.end.close(); err != nil {
		return result, err
	}
	return result, r.end.check(message)
}

// closeGrace is the time in which the test completes after the peer has closed the
// connection, which it does when it is through and has stayed for retransmissions.
const closeGrace = time.Second

// watchPeer returns a context that is canceled closeGrace after the peer is gone, as far
// as its TCP connection tells.
func (r *runner) watchPeer(ctx context.Context) (context.Context, func()) {
	peer := r.peer
	if peer == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		err := peer.Await(make([]byte, 1), "wait for its end of the test")
		select {
		case <-time.After(closeGrace):
			cancel(err)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// report writes the originals' two lines.
func (r Result) report(w io.Writer) {
	seconds, usec := r.Elapsed.Seconds(), float64(r.Elapsed)/1e3
	fmt.Fprintf(w, "%d bytes in %.2f seconds = %.2f Mbit/sec\n", r.Bytes, seconds, float64(r.Bytes)*8/usec)
	fmt.Fprintf(w, "%d iters in %.2f seconds = %.2f usec/iter\n", r.Iters, seconds, usec/float64(r.Iters))
}

// close frees our side, and the device if it is ours.
func (r *runner) close() (err error) {
	if r.end != nil {
		err = r.end.close()
	}
	if r.opened != nil {
		err = errors.Join(err, r.opened.Close())
	}
	if r.peer != nil {
		err = errors.Join(err, r.peer.Close())
	}
	r.end, r.opened, r.peer = nil, nil, nil
	return err
}
