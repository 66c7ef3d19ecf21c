package reliability

import "github.com/softrnic/softrnic/wire"

// Receiver tracks which request packet a responder expects.
type Receiver struct {
	expected wire.PSN
	nakSent  bool
	msn      uint32 // messages completed, 24 bits
}

// Arrival classifies a request packet by its PSN.
type Arrival uint8

const (
	InOrder     Arrival = iota // the expected packet
	Duplicate                  // seen before
	Gap                        // ahead: a NAK is due
	RepeatedGap                // ahead, and the NAK for this gap has been sent
)

// Reset expects psn next and starts the message sequence number at 0.
func (r *Receiver) Reset(psn wire.PSN) { *r = Receiver{expected: psn} }

// Expected is the PSN of the next packet.
func (r *Receiver) Expected() wire.PSN { return r.expected }

// Classify says what a packet with this PSN is. Each gap is a Gap once; it
// ends when the expected packet arrives.
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

// OnRNRNAK notes that the expected packet was answered with an RNR NAK: it is
// expected still, and what was sent behind it is dropped without another word.
func (r *Receiver) OnRNRNAK() { r.nakSent = true }

// Advance moves past n PSNs.
func (r *Receiver) Advance(n int) { r.expected = r.expected.Add(n) }

// CompleteMessage counts one finished message.
func (r *Receiver) CompleteMessage() { r.msn = (r.msn + 1) & 0xffffff }

// MSN is the message sequence number that an AETH carries.
func (r *Receiver) MSN() uint32 { return r.msn }
