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

// A Result has the measurements of a run.
type Result struct {
	Bandwidth []BandwidthRow // of a bandwidth test, one a size
	Latency   []LatencyRow   // of a latency test, one a size
	Lost      int64          // messages of UC or UD

	plan *plan
	info object
}

// ErrLimit reports a result below the requested limit.
var ErrLimit = errors.New("below the limit")

// Run runs a test on either side. An interrupted run returns the result so far with the error.
func Run(ctx context.Context, o Options) (*Result, error) {
	p, err := o.makePlan()
	if err != nil {
		return nil, err
	}
	r := &runner{plan: p, result: &Result{plan: p}}
	if o.Server == "" {
		err = r.runServer(ctx)
	} else {
		err = r.runClient(ctx)
	}
	err = errors.Join(err, r.close())
	if r.result.info == nil {
		return nil, err
	}
	return r.result, errors.Join(err, r.checkLimits())
}

// A runner is the state of a run.
type runner struct {
	*plan
	dev       verbs.Device
	handshake *handshake
	endpoint  *endpoint
	result    *Result

	// With the RDMA CM.
	cmEndpoint *rdmacm.Endpoint // of a client
	cmServer   *rdmacm.Server[*cm.Request]
	manager    *cm.Manager
	serverAddr netip.AddrPort // that the client connects to
	cmClient   *cmChannel     // the client that is served
	udListener *cm.UDListener
	conns      []*cm.Conn // of the queue pairs
}

// openDevice opens the device at the source address ip, unless Options.Device is set.
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

// runClient connects to the server and runs the test.
func (r *runner) runClient(ctx context.Context) error {
	dial := r.dialTCP
	if r.usesCM() {
		dial = r.dialCM
	}
	c, err := dial(ctx)
	if err != nil {
		return err
	}
	r.handshake = &handshake{channel: c, client: true, params: r.testParams()}
	if err := r.setUpTest(ctx); err != nil {
		return err
	}
	return r.runTest(ctx)
}

func (r *runner) dialTCP(ctx context.Context) (channel, error) {
	c, err := oob.Dial(ctx, r.Bind, r.Server, r.Port, r.HandshakeTimeout)
	if err != nil {
		return nil, err
	}
	if err := r.openDevice(c.LocalIP()); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return tcpChannel{c}, nil
}

// runServer runs the test with the first client that completes the handshake.
func (r *runner) runServer(ctx context.Context) error {
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
	if r.fullOutput() {
		io.WriteString(r.Out, "\n************************************\n* Waiting for client to connect... *\n************************************\n")
	}
	for {
		c, first, err := oob.AcceptFirst(ctx, accept, r.readHello, r.Dropped)
		if err != nil {
			return err
		}
		r.handshake = &handshake{channel: c, params: r.testParams()}
		r.handshake.setFirstMessage(first)
		if err = r.acceptClient(ctx, c); err == nil {
			stop()
			return r.runTest(ctx)
		}
		var wrong *oob.PeerError
		if !errors.As(err, &wrong) {
			return err
		}
		r.Dropped(err)
		if err := r.closePeer(); err != nil {
			return err
		}
	}
}

// A clientChannel is a server's channel to a client.
type clientChannel interface {
	channel
	oob.Client
}

func (r *runner) listenTCP() (port int, accept func(context.Context) (clientChannel, error), stop func(), err error) {
	l, err := oob.Listen(r.Bind, r.Port)
	if err != nil {
		return 0, nil, nil, err
	}
	accept = func(ctx context.Context) (clientChannel, error) {
		c, err := l.Accept(ctx, min(r.HandshakeTimeout, helloTimeout))
		return tcpChannel{c}, err
	}
	return l.Port(), accept, func() { l.Close() }, nil
}

// acceptClient continues the handshake with a client whose first message has been read.
func (r *runner) acceptClient(ctx context.Context, c clientChannel) error {
	switch c := c.(type) {
	case tcpChannel:
		c.SetTimeout(r.HandshakeTimeout)
		if err := r.openDevice(c.LocalIP()); err != nil {
			return err
		}
	case *cmChannel:
		if err := r.useCMChannel(c); err != nil {
			return err
		}
	}
	return r.setUpTest(ctx)
}

// setUpTest negotiates with the peer, opens the endpoint and connects the queue pairs.
func (r *runner) setUpTest(ctx context.Context) (err error) {
	mtu, err := r.portMTU(r.dev)
	if err != nil {
		return err
	}
	if r.negotiated, err = r.handshake.negotiate(mtu, r.NoVersions); err != nil {
		return err
	}
	if r.RDMACM {
		if _, err := r.handshake.exchangeKeys(Keys{}, "wait for each other before connecting"); err != nil {
			return err
		}
	}
	if r.endpoint, err = newEndpoint(r.plan, r.dev); err != nil {
		return err
	}
	if r.RDMACM {
		if err := r.connectCM(ctx); err != nil {
			return err
		}
		if _, err := r.handshake.exchangeKeys(Keys{}, "wait for each other after connecting"); err != nil {
			return err
		}
	}
	r.result.info = r.testInfo(r.dev)
	if r.fullOutput() {
		r.writeBanner(r.Out, r.dev)
	}
	return r.exchangeAddresses()
}

// checkLimits compares the result with the requested limits.
func (r *runner) checkLimits() error {
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

// closePeer closes the connections to a peer and the endpoint, and the device if it was opened for
// that peer.
func (r *runner) closePeer() (err error) {
	var calls sync.WaitGroup
	for _, conn := range r.conns {
		calls.Go(func() { disconnect(conn) })
	}
	calls.Wait()
	if r.handshake != nil {
		err = r.handshake.close()
	}
	if r.endpoint != nil {
		err = errors.Join(err, r.endpoint.close())
	}
	if r.udListener != nil {
		err = errors.Join(err, r.udListener.Close())
	}
	r.conns, r.handshake, r.endpoint, r.udListener = nil, nil, nil, nil
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

// close closes all resources of the run.
func (r *runner) close() error {
	err := r.closePeer()
	switch {
	case r.cmEndpoint != nil:
		err = errors.Join(err, r.cmEndpoint.Close())
	case r.cmServer != nil:
		err = errors.Join(err, r.cmServer.Close())
	}
	return err
}
