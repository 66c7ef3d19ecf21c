package perftest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/softrnic/softrnic/internal/tools/oob"
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
	talk   *talk
	end    *end
	opened verbs.Device // by us
	result *Result
}

// join meets the server.
func (r *runner) join(ctx context.Context) error {
	c, err := oob.Dial(ctx, r.Server, r.Port, r.Patience)
	if err != nil {
		return err
	}
	r.talk = &talk{channel: tcp{c}, client: true}
	if err := r.prepare(c); err != nil {
		return err
	}
	return r.play(ctx)
}

// host meets the first client that does its part.
func (r *runner) host(ctx context.Context) error {
	l, err := oob.Listen(r.Port)
	if err != nil {
		return err
	}
	defer l.Close()
	r.Listening(l.Port())
	if r.full() {
		io.WriteString(r.Out, "\n************************************\n* Waiting for client to connect... *\n************************************\n")
	}
	greet := func(c *oob.Conn) ([]byte, error) { return hello(c, r.Options) }
	for {
		c, first, err := oob.First(ctx, l, min(r.Patience, helloPatience), greet, r.Dropped)
		if err != nil {
			return err
		}
		c.SetPatience(r.Patience)
		r.talk = &talk{channel: tcp{c}}
		r.talk.said(first)
		err = r.prepare(c)
		var wrong *oob.PeerError
		if errors.As(err, &wrong) {
			r.Dropped(err)
			if err := r.close(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		l.Close()
		return r.play(ctx)
	}
}

// prepare opens the device, agrees with the peer, makes our side, and connects.
func (r *runner) prepare(c *oob.Conn) (err error) {
	dev := r.Device
	if dev == nil {
		if dev, err = r.Open(c.LocalIP()); err != nil {
			return err
		}
		r.opened = dev
	}
	mtu, err := r.portMTU(dev)
	if err != nil {
		return err
	}
	if r.agreed, err = r.talk.start(mtu, r.NoVersions); err != nil {
		return err
	}
	if r.end, err = newEnd(r.plan, dev); err != nil {
		return err
	}
	r.result.info = r.testInfo(dev)
	if r.full() {
		r.banner(r.Out, dev)
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

// close frees our side, and the device if it is ours.
func (r *runner) close() (err error) {
	if r.talk != nil {
		err = r.talk.close()
	}
	if r.end != nil {
		err = errors.Join(err, r.end.close())
	}
	if r.opened != nil {
		err = errors.Join(err, r.opened.Close())
	}
	r.talk, r.end, r.opened = nil, nil, nil
	return err
}
