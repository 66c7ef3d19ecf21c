package rping

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/verbs"
)

// runClient connects to a server and sends the pings.
func (o *Options) runClient(ctx context.Context) (err error) {
	addr, err := rdmacm.Resolve(ctx, o.Addr, "")
	if err != nil {
		return fmt.Errorf("-a: %w", err)
	}
	source, err := rdmacm.ResolveBind(ctx, o.Source, "")
	if err != nil {
		return fmt.Errorf("-I: %w", err)
	}
	at, err := rdmacm.OpenClient(o.DeviceSource, addr, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	e, err := newEndpoint(o, at.Device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	e.conn, err = at.Manager.Dial(ctx, netip.AddrPortFrom(addr, uint16(o.Port)), e.qp, cm.DialOptions{
		ConnectOptions: o.connectOptions(), Prepare: e.postFirstReceive, PrivateData: rdmacm.EncodeParams(o.params()),
	})
	if err != nil {
		return fmt.Errorf("connect error: %w", rdmacm.ExplainRejection(err, o.params()))
	}
	o.debugf("rdma_connect successful\n")
	err = e.runTest(ctx, at.Manager, e.sendPings)
	if o.Count == 0 && (ctx.Err() != nil || errors.Is(err, cm.ErrDisconnected)) {
		return nil // the regular end of an endless client
	}
	return err
}

// sendPings sends all pings.
func (e *endpoint) sendPings(ctx context.Context) error {
	for n := 0; e.Count == 0 || n < e.Count; n++ {
		if err := e.sendPing(ctx, n); err != nil {
			return fmt.Errorf("ping %d: %w", n, err)
		}
	}
	return nil
}

// sendPing sends ping number n.
func (e *endpoint) sendPing(ctx context.Context, n int) error {
	source, sink := e.source.Bytes(), e.data.Bytes()
	fillPing(source, n)
	for _, step := range []struct {
		mr      verbs.MR
		missing string
	}{
		{e.source, "the server to read"},
		{e.data, "the server to write"},
	} {
		info := Info{step.mr.Addr(), step.mr.RKey(), uint32(e.Size)}
		e.debugf("RDMA addr %x rkey %x len %d\n", info.Addr, info.RKey, info.Size)
		if err := e.sendInfo(info); err != nil {
			return err
		}
		if _, err := e.waitCompletion(ctx, verbs.WCRecv); err != nil {
			return e.explainIdle(err, step.missing)
		}
	}
	if e.Validate {
		if err := comparePing(n, sink, source); err != nil {
			return err
		}
	}
	if e.Verbose {
		fmt.Fprintf(e.Out, "ping data: %s\n", untilNUL(sink))
	}
	return nil
}
