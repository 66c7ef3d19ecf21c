package main

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/debugclient"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// A selfTestResult has the figures of the self test.
type selfTestResult struct {
	err           error
	from, to      netip.AddrPort
	bytes         int
	took          time.Duration
	packets       uint64 // sent by both
	retransmitted uint64
}

func (r selfTestResult) String() string {
	return fmt.Sprintf("%v wrote and sent %s to %v in %v, %d packets, %d of them retransmitted",
		r.from, formatBytes(r.bytes), r.to, r.took.Round(time.Microsecond), r.packets, r.retransmitted)
}

// Parameters of the self test: the bytes of a message, the timeout, and the duration that is a warning.
const (
	selfTestBytes = 1 << 20
	selfTestTime  = 5 * time.Second
	selfTestSlow  = 250 * time.Millisecond // it takes 1 to 10 ms on an idle machine
)

// selfTest exchanges an RDMA write and a message between two devices of this process over their
// sockets, and requests a report from the debug endpoint of one.
func selfTest(ctx context.Context, options rnic.Options) (r selfTestResult, endpoint error) {
	ctx, cancel := context.WithTimeout(ctx, selfTestTime)
	defer cancel()
	r.bytes = selfTestBytes
	options.AnyPort, options.Debug = true, rnic.DebugOff
	var a, b *rnic.Device
	if a, r.err = rnic.Open(options); r.err != nil {
		return r, nil
	}
	defer a.Close()
	if options.Addrs != "" || options.Addr.IsValid() {
		options.Addr, options.Addrs = netip.AddrPortFrom(a.Addr().Addr(), 0), "" // the address that the user has set
	}
	if b, r.err = rnic.Open(options); r.err != nil {
		return r, nil
	}
	defer b.Close()
	r.from, r.to = a.Addr(), b.Addr()
	start := time.Now()
	r.err = exchangeData(ctx, a, b)
	r.took = time.Since(start)
	for _, d := range []*rnic.Device{a, b} {
		c := d.Inspect().Counters
		r.packets += c.SentPkts
		r.retransmitted += c.Retransmitted
	}
	return r, tryDebugEndpoint(ctx, a)
}

// tryDebugEndpoint opens the debug endpoint of a device and requests a report.
func tryDebugEndpoint(ctx context.Context, dev *rnic.Device) error {
	if err := dev.ServeDebug(rnic.DebugAuto); err != nil {
		return err
	}
	client, err := debugclient.NewClient(dev.DebugAddr())
	if err != nil {
		return err
	}
	_, err = client.Report(ctx)
	return err
}

// A selfTestEndpoint is one side of the self test: a connected queue pair and memory, half of it
// for the write, half for the message.
type selfTestEndpoint struct {
	dev verbs.Device
	cq  verbs.CQ
	qp  verbs.QP
	mr  verbs.MR
}

func newSelfTestEndpoint(dev verbs.Device) (e selfTestEndpoint, err error) {
	e.dev = dev
	pd, err := dev.AllocPD()
	if err != nil {
		return e, err
	}
	if e.cq, err = dev.CreateCQ(4); err != nil {
		return e, err
	}
	e.qp, err = pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq,
		Cap: verbs.QPCap{MaxSendWR: 2, MaxRecvWR: 2, MaxSendSGE: 1, MaxRecvSGE: 1}})
	if err != nil {
		return e, err
	}
	e.mr, err = pd.RegMR(make([]byte, 2*selfTestBytes), verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	return e, err
}

// exchangeData writes and sends from a to b and compares the data.
func exchangeData(ctx context.Context, da, db verbs.Device) error {
	a, err := newSelfTestEndpoint(da)
	if err != nil {
		return err
	}
	b, err := newSelfTestEndpoint(db)
	if err != nil {
		return err
	}
	ea, err := verbs.LocalEndpoint(a.dev, a.qp, 0)
	if err != nil {
		return err
	}
	eb, err := verbs.LocalEndpoint(b.dev, b.qp, 0)
	if err != nil {
		return err
	}
	if err := verbs.Connect(a.qp, ea, eb, verbs.ConnectOptions{}); err != nil {
		return err
	}
	if err := verbs.Connect(b.qp, eb, ea, verbs.ConnectOptions{}); err != nil {
		return err
	}
	data := a.mr.Bytes()
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	const half = selfTestBytes
	if _, err := b.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{b.mr.SGE(half, half)}}}); err != nil {
		return err
	}
	_, err = a.qp.PostSend([]verbs.SendWR{
		{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGList: []verbs.SGE{a.mr.SGE(0, half)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()},
		{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{a.mr.SGE(half, half)}},
	})
	if err != nil {
		return err
	}
	if err := waitCompletions(ctx, a.cq, 2); err != nil {
		return err
	}
	if err := waitCompletions(ctx, b.cq, 1); err != nil {
		return err
	}
	if !bytes.Equal(a.mr.Bytes(), b.mr.Bytes()) {
		return fmt.Errorf("%v received other data than %v sent", eb, ea)
	}
	return nil
}

// waitCompletions waits for n successful completions.
func waitCompletions(ctx context.Context, cq verbs.CQ, n int) error {
	wc := make([]verbs.WC, n)
	for got := 0; got < n; {
		k, err := cq.PollWait(ctx, wc[got:])
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for a completion: none within %v", selfTestTime)
		}
		if err != nil {
			return fmt.Errorf("waiting for a completion: %w", err)
		}
		for _, c := range wc[got : got+k] {
			if err := c.Err(); err != nil {
				return err
			}
		}
		got += k
	}
	return nil
}
