package protocol

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// TransferDone reports that an RDMARead, RDMAWrite or RDMAAtomic is complete and that
// the net no longer owns its memory. After an error the caller should call FailPeer.
func (c *Core) TransferDone(transferID uint64, err error) {
	l := deferredCall{f: (*Core).finishTransfer, transferID: transferID, err: err}
	if c.deferIfBusy(l) {
		return
	}
	c.enter()
	defer c.exit()
	c.finishTransfer(l)
}

func (c *Core) finishTransfer(l deferredCall) {
	r := c.requests.get(l.transferID)
	if r == nil || r.state != stateReading && r.state != stateWriting {
		return
	}
	p := c.peers.Get(int(r.peer))
	if r.state == stateReading && !r.oneSided {
		c.enqueue(int(r.peer), sendOp{op: opReply, kind: envelope.FIN, id: r.remoteID})
	}
	switch {
	case l.err == nil:
		c.complete(r, nil)
	case p.err != nil:
		c.complete(r, p.err)
	default:
		c.complete(r, c.newLostError(int(r.peer), l.err))
	}
}

// Put starts an RMA write of r.Buf to memory of rank r.Dest, without notification. It
// is done when the memory is written; packets sent later arrive after the data.
func (c *Core) Put(r *Request, key envelope.Key) { c.startOneSided(r, key, opPut) }

// Get starts an RMA read of memory of rank r.Dest into r.Buf, without notification.
func (c *Core) Get(r *Request, key envelope.Key) { c.startOneSided(r, key, opGet) }

func (c *Core) startOneSided(r *Request, key envelope.Key, o opKind) {
	c.enter()
	defer c.exit()
	r.peer, r.key, r.Bytes, r.oneSided = int32(r.Dest), key, len(r.Buf), true
	if r.Bytes == 0 {
		c.complete(r, c.peerState(r.Dest).err)
		return
	}
	c.enqueue(r.Dest, sendOp{op: o, r: r})
}

// startTransfer starts the RDMA operation of an RMA request.
func (c *Core) startTransfer(to int, o sendOp) bool {
	r := o.r
	c.requests.add(r)
	var err error
	state := stateReading
	switch o.op {
	case opGet:
		err = c.net.RDMARead(to, r.Buf, r.key, r.id)
	case opPut:
		state = stateWriting
		err = c.net.RDMAWrite(to, r.Buf, r.key, r.id)
	case opPutNotify:
		state = stateWriting
		err = c.net.(Notifier).RDMAWriteImm(to, r.Buf, r.key, r.notice, r.id)
	default:
		err = c.net.(Atomics).RDMAAtomic(to, r.Buf, r.key, r.atomic, r.id)
	}
	switch {
	case err == ErrNoRoom:
		return false
	case err == nil:
		r.state = state
	case c.peerState(to).err != nil:
		c.complete(r, c.peerState(to).err)
	default:
		c.complete(r, fmt.Errorf("rank %d: %w", to, err))
	}
	return true
}
