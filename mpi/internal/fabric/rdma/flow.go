package rdma

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/verbs"
)

// A Flow is the flow control of packets, which mpi.Flow documents.
type Flow uint8

const (
	FlowShared Flow = iota // credits, with receives that all connections share
	FlowCredit             // credits, with receives of each connection
	FlowRDMA               // a stream; the receiver reports free bytes
	FlowNIC                // a stream; the adapter waits for a receive
)

var flowNames = [...]string{"shared", "credit", "rdma", "nic"}

// FlowNames returns the names of the modes, by their value.
func FlowNames() []string { return flowNames[:] }

// String returns the name of the mode.
func (m Flow) String() string {
	if int(m) < len(flowNames) {
		return flowNames[m]
	}
	return fmt.Sprintf("Flow(%d)", uint8(m))
}

// ErrFlow is the error of a connection to a rank with another flow control.
var ErrFlow = errors.New("rdma: ranks differ in Options.Flow")

// checkFlow returns an ErrFlow if a rank has another flow control.
func (f *Fabric) checkFlow(rank int, m Flow) error {
	if m != f.o.Flow {
		return fmt.Errorf("%w: rank %d has %v, rank %d %v", ErrFlow, f.rank, f.o.Flow, rank, m)
	}
	return nil
}

// flowError returns err as an ErrFlow if it is the rejection of one.
func flowError(err error) error {
	if rejected := (*cm.RejectError)(nil); errors.As(err, &rejected) {
		if text, ok := bytes.CutPrefix(rejected.PrivateData, []byte(ErrFlow.Error())); ok {
			return fmt.Errorf("%w%s", ErrFlow, bytes.TrimRight(text, "\x00"))
		}
	}
	return err
}

// A handshake is the private data of a connection's REQ, behind the ticket, and REP.
type handshake struct {
	ring   remoteRing // of the fast path, or with n receives for a stream
	flow   Flow
	window uint32 // with FlowNIC, of the ring
}

func (h *handshake) appendTo(b []byte) []byte {
	b = append(h.ring.appendTo(b), byte(h.flow))
	return binary.BigEndian.AppendUint32(b, h.window)
}

func (h *handshake) unmarshal(b []byte) {
	h.ring.unmarshal(b)
	if len(b) >= remoteRingSize+5 {
		h.flow, h.window = Flow(b[remoteRingSize]), binary.BigEndian.Uint32(b[remoteRingSize+1:])
	}
}

// newHandshake creates the memory of a link that the rank writes packets to, and returns
// what the rank must know of it.
func (f *Fabric) newHandshake(l *link) (h handshake, err error) {
	if l.stream != nil {
		return l.stream.handshake(f.o.Flow), nil
	}
	h.flow = f.o.Flow
	h.ring, err = f.createRing(l)
	return h, err
}

// applyHandshake applies the rank's handshake.
func (f *Fabric) applyHandshake(l *link, b []byte) error {
	var h handshake
	h.unmarshal(b)
	if err := f.checkFlow(l.rank, h.flow); err != nil {
		return err
	}
	if l.stream != nil {
		return l.stream.connect(&h, f.packetSize())
	}
	l.remoteRing = h.ring
	return nil
}

// packetSize returns the maximum length of a packet.
func (f *Fabric) packetSize() int { return paddedSize(envelope.Size + f.o.Eager) }

// queueAttr returns the attributes of a link's queue pair, whose receives depend on the
// flow control.
func (f *Fabric) queueAttr() verbs.QPInitAttr {
	a := verbs.QPInitAttr{Type: verbs.RC, SendCQ: f.cq, RecvCQ: f.cq, SelectiveSignaling: true,
		Cap: verbs.QPCap{MaxSendWR: sendQueue, MaxSendSGE: 1, MaxInlineData: inlineMax}}
	if f.o.Flow == FlowShared {
		a.SRQ = f.srq
		return a
	}
	a.Cap.MaxRecvWR, a.Cap.MaxRecvSGE, a.NoCredits = f.linkReceives(), 1, f.o.Flow != FlowNIC
	return a
}

// linkReceives returns the depth of the receive queue of a link, 0 with FlowShared.
func (f *Fabric) linkReceives() int {
	switch f.o.Flow {
	case FlowShared:
		return 0
	case FlowCredit:
		return f.o.Credits + unpaidReceives
	case FlowNIC:
		n := f.ringSize()
		return n/streamWindow(n) - 1
	}
	return streamReceives(f.ringSize()) + unpaidReceives + repostBatch
}

// unpaidReceives is the number of receives for packets that need no credit, which return
// credits: each stands for half of the credits, or of the free bytes, and the rank cannot
// use those of two before it has handled the first.
const unpaidReceives = 4

// postInitialReceives posts the receives of a link. It is the Prepare function of package
// cm.
func (f *Fabric) postInitialReceives(l *link) func(verbs.QP) error {
	return func(qp verbs.QP) error {
		switch {
		case l.buffers != nil:
			return l.buffers.addBuffers(f.linkReceives())
		case l.stream != nil:
			return l.stream.postReceives(qp, 1)
		}
		return nil
	}
}
