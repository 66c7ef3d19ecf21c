package onesided

import (
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// A transfer is an operation in progress: an RDMA operation, a message, or a series of packets
// and replies.
type transfer struct {
	request protocol.Request // RDMA operation or message
	w       *Window
	peer    *peer
	region  *remoteRegion // at the target; nil for a part of another transfer

	Operation        // At is in region; zero for a part of another transfer
	staging   []byte // contiguous memory of the elements
	word      [8]byte
	element   rma.Element
	cursor    rma.Cursor
	elements  int
	next      int    // first element not sent
	bytesLeft int    // bytes not received
	id        uint64 // in replies

	parts  int                     // outstanding RDMA operations
	err    error                   // first error of a part
	parent *transfer               // the transfer that this one is a part of, or itself
	result *Result                 // of a Request, or nil
	onDone func(*protocol.Request) // onPartDone, allocated once
}

// newTransfer returns an empty transfer to a rank.
func (w *Window) newTransfer(p *peer) *transfer {
	var t *transfer
	if n := len(w.idleTransfers) - 1; n >= 0 {
		t = w.idleTransfers[n]
		w.idleTransfers[n] = nil
		w.idleTransfers = w.idleTransfers[:n]
	} else {
		t = &transfer{}
	}
	t.w, t.peer, t.parent = w, p, t
	return t
}

// maxIdleTransfers is the maximum number of idle transfers kept for reuse.
const maxIdleTransfers = 256

// complete completes a transfer and recycles it.
func (t *transfer) complete(err error) {
	w := t.w
	if err == nil && t.staging != nil {
		if mem, ok := t.recv.Contiguous(); !ok || len(mem) > 0 && &mem[0] != &t.staging[0] {
			t.recv.Unpack(t.staging)
		}
	}
	if t.id != 0 {
		delete(w.pending.transfers, t.id)
	}
	if err != nil && t.peer.sendQueue.err == nil {
		t.peer.sendQueue.err = err
	}
	if t.result != nil {
		t.result.Done, t.result.Err = true, err
	}
	p, remote := t.peer, t.region
	*t = transfer{onDone: t.onDone}
	if len(w.idleTransfers) < maxIdleTransfers {
		w.idleTransfers = append(w.idleTransfers, t)
	}
	if remote != nil { // not a part of another transfer
		remote.users--
		w.returnIfUnused(w.eng.Core(), p, remote)
	}
}

// stageBuffer sets the contiguous memory of a transfer: that of the buffer, or a copy.
func (t *transfer) stageBuffer() {
	b := t.recv
	if t.packet == packetPut {
		b = t.send
	}
	mem, ok := b.Contiguous()
	if !ok {
		mem = make([]byte, b.Size())
		if t.packet == packetPut {
			b.Pack(mem)
		}
	}
	t.staging = mem
}

// returnIfUnused sends Returned for a recalled region without transfers in progress.
func (w *Window) returnIfUnused(core *protocol.Core, p *peer, remote *remoteRegion) {
	if remote.recalled && remote.users == 0 {
		w.sendSignal(core, p, packetReturned, remote.id)
	}
}
