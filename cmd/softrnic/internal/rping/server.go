package rping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

type incoming = rdmacm.Incoming[*cm.Request]

// runServer serves one client, or any number with Persistent.
func (o *Options) runServer(ctx context.Context) (err error) {
	bind, err := rdmacm.ResolveBind(ctx, o.Addr, "")
	if err != nil {
		return fmt.Errorf("-a: %w", err)
	}
	skipped := func(err error) { fmt.Fprintln(o.Log, err) }
	s, err := rdmacm.Listen(o.DeviceSource, bind, uint16(o.Port), cm.ListenOptions{NoUC: true}, skipped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, a := range s.Addrs() {
		o.debugf("listening on %v\n", a)
	}
	o.Listening(s.Addrs())
	if o.Persistent {
		return o.servePersistent(ctx, s)
	}
	a, err := s.Accept(ctx)
	if err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	return o.serveClient(ctx, a)
}

// servePersistent serves clients until ctx ends.
func (o *Options) servePersistent(ctx context.Context, s *rdmacm.Server[*cm.Request]) error {
	var clients sync.WaitGroup
	defer clients.Wait()
	slots := make(chan struct{}, maxClients)
	for {
		a, err := s.Accept(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case slots <- struct{}{}:
		default:
			o.Dropped(fmt.Errorf("client %v: limit of %d clients reached", a.Request.RemoteAddr(), maxClients))
			if err := a.Request.Reject(cm.NoResources, nil); err != nil {
				o.Dropped(err)
			}
			continue
		}
		clients.Go(func() {
			if err := o.serveClient(ctx, a); err != nil && ctx.Err() == nil {
				o.Dropped(err)
			}
			<-slots
		})
	}
}

// serveClient serves a client to its end.
func (o *Options) serveClient(ctx context.Context, a incoming) (err error) {
	if err := rdmacm.RejectMismatch(a.Request, o.paramsFor); err != nil {
		return fmt.Errorf("client %v: %w", a.Request.RemoteAddr(), err)
	}
	e, err := newEndpoint(o, a.Endpoint.Device)
	if err != nil {
		return errors.Join(err, a.Request.Reject(cm.NoResources, nil))
	}
	defer func() { err = errors.Join(err, e.close()) }()
	o.debugf("accepting client connection request\n")
	e.conn, err = a.Request.Accept(ctx, e.qp, cm.AcceptOptions{ConnectOptions: o.connectOptions(), Prepare: e.postFirstReceive})
	if err != nil {
		return fmt.Errorf("connect error: %w", err)
	}
	if err := e.runTest(ctx, a.Endpoint.Manager, e.answerPings); err != nil {
		return fmt.Errorf("client %v: %w", a.Request.RemoteAddr(), err)
	}
	return nil
}

// answerPings answers pings until the client disconnects between two of them. The refusal by the
// system of an exited client can be lost, so a silent client that has sent Count pings counts as
// disconnected.
func (e *endpoint) answerPings(ctx context.Context) error {
	for n := 0; ; n++ {
		info, err := e.waitCompletion(ctx, verbs.WCRecv)
		if errors.Is(err, cm.ErrDisconnected) {
			return nil
		}
		if err == nil {
			err = e.answerPing(ctx, n, info)
		} else {
			err = e.explainIdle(err, "the client to say where to read")
			if silent := errors.Is(err, watch.ErrIdle) || errors.Is(err, rdmacm.ErrPeerExited); silent && e.Count > 0 && n >= e.Count {
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("ping %d: %w", n, err)
		}
	}
}

// answerPing answers ping number n, whose data is at from.
func (e *endpoint) answerPing(ctx context.Context, n int, from Info) error {
	e.debugf("Received rkey %x addr %x len %d from peer\n", from.RKey, from.Addr, from.Size)
	if int64(from.Size) > int64(e.Size) || from.Size == 0 {
		return fmt.Errorf("ping of %d bytes, limit %d; give both sides the same -S", from.Size, e.Size)
	}
	if err := e.accessMemory(ctx, verbs.WRRDMARead, verbs.WCRDMARead, from, int(from.Size)); err != nil {
		return err
	}
	ping := e.data.Bytes()[:from.Size]
	length := bytes.IndexByte(ping, 0) + 1
	if length == 0 {
		return fmt.Errorf("ping of %d bytes without a NUL: peer does not follow the rping protocol", len(ping))
	}
	if e.Validate {
		want := make([]byte, len(ping))
		fillPing(want, n)
		if err := comparePing(n, ping, want); err != nil {
			return err
		}
	}
	if e.Verbose {
		fmt.Fprintf(e.Out, "server ping data: %s\n", ping[:length-1])
	}
	if err := e.sendInfo(Info{}); err != nil {
		return err
	}
	to, err := e.waitCompletion(ctx, verbs.WCRecv)
	if err != nil {
		return e.explainIdle(err, "the client to say where to write")
	}
	e.debugf("Received rkey %x addr %x len %d from peer\n", to.RKey, to.Addr, to.Size)
	if int64(to.Size) < int64(length) {
		return fmt.Errorf("write of %d bytes: client buffer has %d", length, to.Size)
	}
	if err := e.accessMemory(ctx, verbs.WRRDMAWrite, verbs.WCRDMAWrite, to, length); err != nil {
		return err
	}
	return e.sendInfo(Info{})
}

// accessMemory reads or writes n bytes of the client's memory.
func (e *endpoint) accessMemory(ctx context.Context, op verbs.WROpcode, done verbs.WCOpcode, at Info, n int) error {
	wr := verbs.SendWR{Opcode: op, SGList: []verbs.SGE{e.data.SGE(0, n)}, RemoteAddr: at.Addr, RKey: at.RKey}
	if err := e.postSend(wr); err != nil {
		return err
	}
	_, err := e.waitCompletion(ctx, done)
	if errors.Is(err, watch.ErrIdle) {
		err = e.explainIdle(err, "the client's memory")
	}
	return err
}

// untilNUL returns the data before its NUL.
func untilNUL(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}
