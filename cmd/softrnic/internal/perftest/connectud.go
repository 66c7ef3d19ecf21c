package perftest

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// exchangeUD determines the peer's queue pair for queue pair i. The client requests it by SIDR; a
// server that sends learns the client's from the first datagram.
func (r *runner) exchangeUD(ctx context.Context, i int) error {
	if r.Server != "" {
		return r.requestUDPeer(ctx, i)
	}
	return r.acceptUDPeer(ctx, i)
}

// serverSends reports whether the server sends data.
func (p *plan) serverSends() bool { return p.Bidirectional || p.Test.Metric == Latency }

func (r *runner) requestUDPeer(ctx context.Context, i int) error {
	e := r.endpoint
	var peer *cm.UDPeer
	err := retryUntilListening(ctx, func() (err error) {
		peer, err = r.manager.DialUD(ctx, r.serverAddr, cm.UDDialOptions{UDQueuePair: cm.UDQueuePair{QP: e.qps[i]}})
		return err
	})
	if err != nil {
		return err
	}
	if err := e.addPeer(peer.AH, peer.QPN, peer.QKey); err != nil || !r.serverSends() {
		return err
	}
	// Four bytes, and the number in the immediate data.
	at := e.areas[i]
	binary.NativeEndian.PutUint32(at.mr.Bytes()[at.send:], e.qps[i].Num())
	_, err = e.qps[i].PostSend([]verbs.SendWR{{Opcode: verbs.WRSendWithImm, Flags: verbs.SendSignaled, Imm: e.qps[i].Num(),
		SGList: []verbs.SGE{at.mr.SGE(at.send, 4)}, AH: e.ahs[i], RemoteQPN: peer.QPN, RemoteQKey: peer.QKey}})
	if err != nil {
		return err
	}
	_, err = e.waitCompletion(ctx)
	copy(at.mr.Bytes()[at.send:], e.pattern[:4])
	return err
}

func (r *runner) acceptUDPeer(ctx context.Context, i int) error {
	e := r.endpoint
	q, err := r.udListener.Accept(ctx)
	if err != nil {
		return err
	}
	at := e.areas[i]
	prepare := func(qp verbs.QP) error {
		if !r.serverSends() {
			return nil
		}
		receive := []verbs.RecvWR{{SGList: []verbs.SGE{at.mr.SGE(at.recv-grhLen, grhLen+4)}}}
		if e.srq != nil {
			_, err := e.srq.PostRecv(receive)
			return err
		}
		_, err := qp.PostRecv(receive)
		return err
	}
	if err := q.Accept(cm.UDAcceptOptions{UDQueuePair: cm.UDQueuePair{QP: e.qps[i], Prepare: prepare}}); err != nil {
		return err
	}
	if !r.serverSends() {
		return e.addPeer(q.RemoteAH(), 0, cm.UDQKey)
	}
	wc, err := e.waitCompletion(ctx)
	if err != nil {
		return err
	}
	if wc.Flags&verbs.WCWithImm == 0 {
		return protocolErrorf("first datagram carries no queue pair number")
	}
	return e.addPeer(q.RemoteAH(), wc.Imm, cm.UDQKey)
}

// addPeer adds the destination of the datagrams of the next queue pair.
func (e *endpoint) addPeer(to verbs.AHAttr, qpn, qkey uint32) error {
	to.TrafficClass, to.SL, to.HopLimit = uint8(max(e.TOS, 0)), uint8(e.SL), hops
	ah, err := e.pd.CreateAH(to)
	if err != nil {
		return err
	}
	e.ahs = append(e.ahs, ah)
	e.udPeers = append(e.udPeers, udPeer{qpn, qkey})
	return nil
}

// A udPeer is a queue pair of the peer.
type udPeer struct{ qpn, qkey uint32 }

// waitCompletion waits for one completion.
func (e *endpoint) waitCompletion(ctx context.Context) (verbs.WC, error) {
	var wc [1]verbs.WC
	if _, err := e.cq.PollWait(ctx, wc[:]); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = protocolErrorf("first datagram did not arrive")
		}
		return wc[0], err
	}
	return wc[0], wc[0].Err()
}
