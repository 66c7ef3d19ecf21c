package perftest

import (
	"fmt"
	"io"
	"math/bits"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// A plan has the options with all defaults resolved.
type plan struct {
	*Options
	client   bool // in perftest's sense: this side sends in a unidirectional test
	sends    bool // this side posts sends
	receives bool // this side posts receives
	txDepth  int
	rxDepth  int
	cqMod    int
	noPeak   bool
	margin   time.Duration
	timed    bool // by Duration
	inline   int

	negotiated
}

// defaultDuration is the interval between reports with Infinite.
const defaultDuration = 5 * time.Second

// makePlan validates the options and resolves defaults.
func (o *Options) makePlan() (*plan, error) {
	o.setDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	p := &plan{Options: o, client: (o.Server != "") != o.Reversed, txDepth: o.TxDepth, rxDepth: o.RxDepth, margin: o.Margin}
	if o.Infinite && o.Duration == 0 {
		o.Duration = defaultDuration
	}
	p.timed = o.Duration > 0
	if p.margin < 0 {
		p.margin = o.Duration / 4
	}
	both := o.Bidirectional || o.Test.Metric == Latency
	p.sends = p.client || both && !(o.Test.fetches() && o.Test.Metric == Latency)
	p.receives = o.consumesReceives() && (!p.client || both)
	p.setDepths()
	p.noPeak = o.NoPeak || p.timed || o.Iters > peakIters || !p.sends
	p.setInlineSize()
	return p, nil
}

// setDefaults replaces nil writers and functions.
func (o *Options) setDefaults() {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Dropped == nil {
		o.Dropped = func(error) {}
	}
	if o.Listening == nil {
		o.Listening = func(int) {}
	}
}

// consumesReceives reports whether messages complete receives.
func (o *Options) consumesReceives() bool { return o.Test.Verb == Send || o.WithImm }

// setDepths sets the depths of the queues and the signaling interval.
func (p *plan) setDepths() {
	unconnected := p.Connection != verbs.RC
	if p.rxDepth == 0 {
		p.rxDepth = defaultRx
		if unconnected && !p.timed {
			p.rxDepth = min(p.Iters, ucMaxRx)
		}
	}
	if !p.timed {
		p.txDepth = min(p.txDepth, p.Iters)
		p.rxDepth = min(p.rxDepth, p.Iters)
	}
	if p.rxDepth%2 == 1 && !p.All {
		p.rxDepth++
	}
	p.cqMod = p.CQMod
	large := p.Size > largeSize && p.Connection != verbs.UD && !p.All && !p.Events
	switch {
	case p.cqMod != 0:
		if large && p.cqMod > 1 {
			fmt.Fprintln(p.Log, "Large messages with CQ moderation can give inaccurate results")
		}
	case p.PostList > 1:
		p.cqMod = p.PostList
	case large:
		p.cqMod = 1
	default:
		p.cqMod = defaultCQM
	}
	p.cqMod = min(p.cqMod, p.txDepth)
}

// setInlineSize sets the maximum size of inline messages.
func (p *plan) setInlineSize() {
	p.inline = p.Inline
	switch {
	case p.Test.fetches():
		p.inline = 0
	case p.inline >= 0:
	case p.Test.Metric == Bandwidth:
		p.inline = 0
	case p.Test.Verb == Write:
		p.inline = 220
	case p.Connection == verbs.UD:
		p.inline = 188
	default:
		p.inline = 236
	}
}

// messageSizes returns the message sizes to run. The MTU must be negotiated.
func (p *plan) messageSizes() []int {
	if !p.All {
		return []int{p.Size}
	}
	most := bits.Len(uint(maxSize)) - 1
	if p.Connection == verbs.UD {
		most = bits.Len(uint(p.mtu.Bytes())) - 1
	}
	var list []int
	for i := 1; i <= most; i++ {
		list = append(list, 1<<i)
	}
	return list
}

// maxMessageSize returns the largest message size.
func (p *plan) maxMessageSize() int {
	list := p.messageSizes()
	return list[len(list)-1]
}

// roundUp rounds n up to a multiple of to.
func roundUp(n, to int) int { return (n + to - 1) / to * to }
