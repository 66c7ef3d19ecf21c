package perftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/verbs"
)

// Result is what a run came to.
type Result struct {
	Bandwidth []BandwidthRow // of a bandwidth test, one a size
	Latency   []LatencyRow   // of a latency test, one a size
	Lost      int64          // messages of UC or UD

	plan *plan
	info object
}

// ErrLimit says that a result is below the limit that was asked for.
var ErrLimit = errors.New("below the limit")

// Run is one run of a program, on either side.
func Run(ctx context.Context, o Options) (*Result, error) {
	p, err := o.plan()
	if err != nil {
		return nil, err
	}
	r := &runner{plan: p, result: &Result{plan: p}}
	if o.Server == "" {
		err = r.host(ctx)
	} else {
		err = r.join(ctx)
	}
	err = errors.Join(err, r.close())
	if r.result.info == nil {
		return nil, err
	}
	return r.result, errors.Join(err, r.limits())
}

// runner is a run under way.
type runner struct {
	*plan
	dev    verbs.Device
	talk   *talk
	end    *end
	result *Result

	// With the RDMA CM.
	place      *rdmacm.End // of a client
	door       *rdmacm.Server[*cm.Request]
	manager    *cm.Manager
	server     netip.AddrPort // that the client connects to
	guest      *rdma          // the client that is served
	udListener *cm.UDListener
	conns      []*cm.Conn // of the queue pairs
}

// openDevice opens the device at our address on the way to the peer, unless
// there is one.
func (r *runner) openDevice(ip netip.Addr) (err error) {
	at := netip.AddrPort{}
	if ip.IsValid() {
		at = netip.AddrPortFrom(ip, roceUDPPort)
	}
	if r.dev = r.Device; r.dev == nil {
		r.dev, err = r.Open(at)
	}
	return err
}

// join meets the server.
func (r *runner) join(ctx context.Context) error {
	dial := r.dialTCP
	if r.usesCM() {
		dial = r.dialCM
	}
	c, err := dial(ctx)
	if err != nil {
		return err
	}
	r.talk = &talk{channel: c, client: true, terms: r.terms()}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	return r.play(ctx)
}

func (r *runner) dialTCP(ctx context.Context) (channel, error) {
	c, err := oob.Dial(ctx, r.Bind, r.Server, r.Port, r.Patience)
	if err != nil {
		return nil, err
	}
	if err := r.openDevice(c.LocalIP()); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return tcp{c}, nil
}

// host meets the first client that does its part.
func (r *runner) host(ctx context.Context) error {
	listen := r.listenTCP
	if r.usesCM() {
		listen = r.listenCM
	}
	port, accept, stop, err := listen()
	if err != nil {
		return err
	}
	stop = sync.OnceFunc(stop)
	defer stop()
	r.Listening(port)
	if r.full() {
		io.WriteString(r.Out, "\n************************************\n* Waiting for client to connect... *\n************************************\n")
	}
	for {
		c, first, err := oob.First(ctx, accept, r.hello, r.Dropped)
		if err != nil {
			return err
		}
		r.talk = &talk{channel: c, terms: r.terms()}
		r.talk.said(first)
		if err = r.greet(ctx, c); err == nil {
			stop()
			return r.play(ctx)
		}
		var wrong *oob.PeerError
		if !errors.As(err, &wrong) {
			return err
		}
		r.Dropped(err)
		if err := r.leave(); err != nil {
			return err
		}
	}
}

// visitor is a client of ours, from its connection on.
type visitor interface {
	channel
	oob.Client
}

func (r *runner) listenTCP() (port int, accept func(context.Context) (visitor, error), stop func(), err error) {
	l, err := oob.Listen(r.Bind, r.Port)
	if err != nil {
		return 0, nil, nil, err
	}
	accept = func(ctx context.Context) (visitor, error) {
		c, err := l.Accept(ctx, min(r.Patience, helloPatience))
		return tcp{c}, err
	}
	return l.Port(), accept, func() { l.Close() }, nil
}

// greet takes a client whose first message has come.
func (r *runner) greet(ctx context.Context, c visitor) error {
	switch c := c.(type) {
	case tcp:
		c.SetPatience(r.Patience)
		if err := r.openDevice(c.LocalIP()); err != nil {
			return err
		}
	case *rdma:
		if err := r.receive(c); err != nil {
			return err
		}
	}
	return r.prepare(ctx)
}

// prepare agrees with the peer, makes our side, and connects.
func (r *runner) prepare(ctx context.Context) (err error) {
	mtu, err := r.portMTU(r.dev)
	if err != nil {
		return err
	}
	if r.agreed, err = r.talk.start(mtu, r.NoVersions); err != nil {
		return err
	}
	if r.RDMACM {
		if _, err := r.talk.keys(Keys{}, "wait for each other before connecting"); err != nil {
			return err
		}
	}
	if r.end, err = newEnd(r.plan, r.dev); err != nil {
		return err
	}
	if r.RDMACM {
		if err := r.connectCM(ctx); err != nil {
			return err
		}
		if _, err := r.talk.keys(Keys{}, "wait for each other after connecting"); err != nil {
			return err
		}
	}
	r.result.info = r.testInfo(r.dev)
	if r.full() {
		r.banner(r.Out, r.dev)
	}
	return r.meet()
}

// limits compares the result with what was asked for.
func (r *runner) limits() error {
	var most BandwidthRow
	for _, row := range r.result.Bandwidth {
		most.Average, most.MsgRate = max(most.Average, row.Average), max(most.MsgRate, row.MsgRate)
	}
	switch {
	case len(r.result.Bandwidth) == 0:
	case r.LimitBW > 0 && most.Average < r.LimitBW:
		return fmt.Errorf("bandwidth %.2f is %w of %.2f", most.Average, ErrLimit, r.LimitBW)
	case r.LimitRate > 0 && most.MsgRate < r.LimitRate:
		return fmt.Errorf("message rate %.6f is %w of %.6f", most.MsgRate, ErrLimit, r.LimitRate)
	}
	return nil
}

// leave ends what there is with a peer, and the device if it was opened for
// the peer.
func (r *runner) leave() (err error) {
	var calls sync.WaitGroup
	for _, conn := range r.conns {
		calls.Go(func() { hangUp(conn) })
	}
	calls.Wait()
	if r.talk != nil {
		err = r.talk.close()
	}
	if r.end != nil {
		err = errors.Join(err, r.end.close())
	}
	if r.udListener != nil {
		err = errors.Join(err, r.udListener.Close())
	}
	r.conns, r.talk, r.end, r.udListener = nil, nil, nil, nil
	if !r.usesCM() {
		err = errors.Join(err, r.closeDevice())
	}
	return err
}

func (r *runner) closeDevice() (err error) {
	if r.dev != nil && r.Device == nil {
		err = r.dev.Close()
	}
	r.dev = nil
	return err
}

// close ends everything.
func (r *runner) close() error {
	err := r.leave()
	switch {
	case r.place != nil:
		err = errors.Join(err, r.place.Close())
	case r.door != nil:
		err = errors.Join(err, r.door.Close())
	}
	return err
}
