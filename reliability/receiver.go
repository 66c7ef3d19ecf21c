package reliability

import "github.com/softrnic/softrnic/wire"

// A Receiver tracks the request packet that a responder expects next.
type Receiver struct {
	expected wire.PSN
	nakSent  bool
	msn      uint32 // messages completed, 24 bits
}

// An Arrival classifies a request packet by its PSN.
type Arrival uint8

const (
	InOrder     Arrival = iota // the expected packet
	Duplicate                  // received before
	Gap                        // ahead of the expected packet: a NAK is due
	RepeatedGap                // ahead; the NAK of this gap has been sent
)

// Reset sets the expected PSN and clears the message sequence number.
func (r *Receiver) Reset(psn wire.PSN) { *r = Receiver{expected: psn} }

// Expected returns the PSN of the next packet in order.
func (r *Receiver) Expected() wire.PSN { return r.expected }

// Classify classifies a packet with the given PSN. It returns Gap once per gap.
// The gap ends when the expected packet arrives.
func (r *Receiver) Classify(psn wire.PSN) Arrival {
	switch d := psn.Sub(r.expected); {
	case d == 0:
		r.nakSent = false
		return InOrder
	case d < 0:
		return Duplicate
	case r.nakSent:
		return RepeatedGap
	}
	r.nakSent = true
	return Gap
}

// OnRNRNAK records that the expected packet was rejected with an RNR NAK. The
// packet remains expected, and later packets are dropped without a NAK.
func (r *Receiver) OnRNRNAK() { r.nakSent = true }

// Advance moves the expected PSN by n.
func (r *Receiver) Advance(n int) { r.expected = r.expected.Add(n) }

// CompleteMessage increments the message sequence number.
func (r *Receiver) CompleteMessage() { r.msn = (r.msn + 1) & 0xffffff }

// MSN returns the message sequence number for the AETH of responses.
func (r *Receiver) MSN() uint32 { return r.msn }
