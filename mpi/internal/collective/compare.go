package collective

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// Collective calls are compared by their signatures (signature.go) wherever ranks learn the
// signatures of other ranks anyway:
//
//   - A message carries the signature of its call. It is compared with the local call of that
//     sequence number: one that waits for it, one that expects nothing from its sender, one
//     that is complete, or one that has not started yet and is compared then.
//   - In shared memory each rank sees the signatures of all others (boardwait.go).
//   - A waiter sends liveness probes to the rank that it waits for (package detector), with the
//     signature of its call. A rank that has completed that call replies so; messages
//     that have not arrived from it by then never will.
//
// The rank that finds a mismatch notifies all other ranks of the communicator. Calls of that
// sequence number fail at all ranks; where the call is complete already, the next call fails,
// or Finalize, before which all ranks flush (package detector).

// findLeftover finds an unexpected message of a complete call and reports it as a mismatch.
func (c *Comm) findLeftover(number uint32, signature callSignature) {
	c.Engine.Do(func(core *protocol.Core) {
		var d *callMismatch
		core.EachMessage(func(m *protocol.Message, _ bool) bool {
			if e := m.Envelope; e.Context == c.ContextID+1 && uint32(e.Tag)&maxSeq == number && e.Tag&groupTag != groupTag {
				d = &callMismatch{Number: number, Rank: uint32(c.LocalRank(int(e.Source))), Other: uint32(c.Rank), Signature: signature, OtherSignature: signature, Sends: int64(m.Length), Expects: -1}
			}
			return d == nil
		})
		if d != nil {
			c.reportMismatch(core, d)
		}
	})
}

// reportMismatch records a mismatch and notifies the other ranks if it is new. The caller
// holds the engine's lock.
func (c *Comm) reportMismatch(core *protocol.Core, d *callMismatch) {
	c.mu.Lock()
	isNew := c.log.recordMismatch(d, c.seq&maxSeq)
	c.mu.Unlock()
	if isNew {
		c.broadcastMismatch(core, d)
	}
}

// broadcastMismatch sends a mismatch to all other ranks. The caller holds the engine's
// lock.
func (c *Comm) broadcastMismatch(core *protocol.Core, d *callMismatch) {
	for r := range c.Size {
		if r != c.Rank {
			c.sendMismatch(core, c.WorldRank(r), d)
		}
	}
}

// sendMismatch sends a mismatch to a rank of the job.
func (c *Comm) sendMismatch(core *protocol.Core, rank int, d *callMismatch) {
	payload, _ := binary.Append(nil, binary.LittleEndian, d) // d has a fixed size
	c.job.detector.SendMismatch(core, rank, c.ContextID, payload)
}

// handleMismatch handles a packet of sendMismatch.
func (j *Job) handleMismatch(h *envelope.Header, payload []byte) error {
	d := new(callMismatch)
	if _, err := binary.Decode(payload, binary.LittleEndian, d); err != nil {
		return err
	}
	c := j.comms.get(uint32(h.ID))
	if c == nil {
		j.comms.addEarlyMismatch(uint32(h.ID), d)
		return nil
	}
	if d.Number <= maxSeq && int64(d.Rank) < int64(c.Size) && int64(d.Other) < int64(c.Size) {
		c.mu.Lock()
		c.log.recordMismatch(d, c.seq&maxSeq)
		c.mu.Unlock()
	}
	return nil
}

// CompareMessage implements protocol.Core.OnSignature: it compares the call of a message with the
// known call of its sequence number.
func (j *Job) CompareMessage(from int, e match.Envelope, signature uint64, r *protocol.Request) {
	if e.Context&1 == 0 || e.Tag&groupTag == groupTag {
		return
	}
	if c := j.comms.get(e.Context &^ 1); c != nil {
		c.compareCall(j.engine.Core(), from, uint32(e.Tag)&maxSeq, callSignature(signature), r == nil)
	}
}

// compareCall compares the call of a rank of the job with the known call of its number.
// unexpected reports that a message of it had no receive; if the call is complete at this rank,
// that message is a mismatch.
func (c *Comm) compareCall(core *protocol.Core, from int, number uint32, signature callSignature, unexpected bool) {
	rank := c.LocalRank(from)
	if rank < 0 || rank >= c.Size || c.job.Check {
		return
	}
	signature = signature.withoutElementKind()
	c.mu.Lock()
	known := c.log.lookup(number, c.seq&maxSeq)
	var d *callMismatch
	if known != nil && unexpected && (known.active != nil || !known.started) {
		known.unexpected++
	}
	switch {
	case known == nil || known.mismatch != nil:
	case !known.started && known.signature == 0:
		known.rank, known.signature = uint32(rank), signature
	case !known.signature.sameCall(signature):
		d = &callMismatch{Number: number, Rank: uint32(rank), Other: known.rank, Signature: signature, OtherSignature: known.signature}
	case unexpected && known.started && known.active == nil:
		d = &callMismatch{Number: number, Rank: uint32(rank), Other: known.rank, Signature: signature, OtherSignature: known.signature, Expects: -1}
	}
	isNew := d != nil && c.log.recordMismatch(d, c.seq&maxSeq)
	c.mu.Unlock()
	if isNew {
		c.broadcastMismatch(core, d)
	}
}

// compareEarly compares the unexpected messages that arrived before this rank made the
// communicator.
func (c *Comm) compareEarly(core *protocol.Core) {
	var early []*protocol.Message
	core.EachMessage(func(m *protocol.Message, _ bool) bool {
		if m.Envelope.Context == c.ContextID+1 && m.Envelope.Tag&groupTag != groupTag && m.Signature() != 0 {
			early = append(early, m)
		}
		return true
	})
	for _, m := range early {
		c.compareCall(core, int(m.Envelope.Source), uint32(m.Envelope.Tag)&maxSeq, callSignature(m.Signature()), true)
	}
}

// A callProbe is the payload of a liveness probe from a rank that waits in a collective call.
type callProbe struct {
	Number    uint32
	Signature callSignature
}

// encodeProbe returns the payload of the probes of a call.
func (k *comparedCall) encodeProbe() []byte {
	payload, _ := binary.Append(nil, binary.LittleEndian, callProbe{k.number, k.signature})
	return payload
}

// handleCallProbe handles a liveness probe of a rank that waits for us in a collective call.
func (j *Job) handleCallProbe(from int, h *envelope.Header, payload []byte) error {
	var p callProbe
	if _, err := binary.Decode(payload, binary.LittleEndian, &p); err != nil {
		return err
	}
	c := j.comms.get(uint32(h.ID))
	if c == nil || p.Signature == 0 || p.Number > maxSeq {
		return nil
	}
	core := j.engine.Core()
	c.compareCall(core, from, p.Number, p.Signature, false)
	c.mu.Lock()
	known := c.log.lookup(p.Number, c.seq&maxSeq)
	var mismatch *callMismatch
	ended := false
	if known != nil {
		mismatch, ended = known.mismatch, known.started && known.active == nil
	}
	c.mu.Unlock()
	switch {
	case mismatch != nil && mismatch.OtherSignature != 0: // a notification may have come before it made the communicator
		c.sendMismatch(core, from, mismatch)
	case mismatch == nil && ended:
		j.detector.SendPacket(core, from, envelope.Header{Tag: deadlock.PacketCallEnded, ID: h.ID}, payload)
	}
	return nil
}

// handleCallEnded handles the reply of a rank that has completed the call in which we wait for
// it. All its messages have arrived: they precede the reply.
func (j *Job) handleCallEnded(from int, h *envelope.Header, payload []byte) error {
	var p callProbe
	if _, err := binary.Decode(payload, binary.LittleEndian, &p); err != nil {
		return err
	}
	c := j.comms.get(uint32(h.ID))
	if c == nil || p.Number > maxSeq {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.log.lookup(p.Number, c.seq&maxSeq); known != nil && known.active != nil {
		list := []int{from}
		if before := known.active.endedRanks.Load(); before != nil {
			list = append(list, *before...)
		}
		known.active.endedRanks.Store(&list)
	}
	return nil
}
