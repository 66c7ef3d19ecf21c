package iwarp

import "fmt"

// Params are the properties of a connection that both ends agreed on in the set-up.
type Params struct {
	Initiator bool
	CRC       bool  // FPDUs have a CRC, in both directions; otherwise the field is 0 and ignored
	IRD       uint8 // READs and atomics that this end serves at a time
	ORD       uint8 // READs and atomics that this end issues at a time
	RTR       bool  // the initiator begins with an empty WRITE or READ, so that the responder may send
	ReadRTR   bool  // it is a READ
	Extended  bool  // the peer has the extensions that the package comment lists
}

// NewRequest returns the request of an initiator that serves and issues as many READs at a time. A
// responder that gets it may send first, too.
func NewRequest(ird, ord uint8, crc bool, private []byte) Handshake {
	return Handshake{
		Revision: 2, CRC: crc, Enhanced: true, PeerToPeer: true, WriteRTR: true, ReadRTR: true,
		IRD: uint16(ird), ORD: uint16(ord), Extended: true, Private: private,
	}
}

// AnswerRequest returns the reply of a responder that serves and issues as many READs at a time, and
// requires a CRC if crc is set. If the request cannot be accepted, the reply rejects it, and the
// error has the reason.
func AnswerRequest(q *Handshake, ird, ord uint8, crc bool, private []byte) (Handshake, Params, error) {
	p := Params{CRC: crc || q.CRC, IRD: ird, ORD: ord, Extended: q.Extended}
	r := Handshake{Reply: true, Revision: q.Revision, CRC: p.CRC, Enhanced: q.Enhanced, Extended: q.Extended, Private: private}
	if q.Enhanced {
		p.IRD, p.ORD = limitReads(ird, q.ORD), limitReads(ord, q.IRD)
		r.IRD, r.ORD = uint16(p.IRD), uint16(p.ORD)
	}
	var err error
	switch {
	case q.Markers:
		err = ErrMarkers
	case q.PeerToPeer && !q.WriteRTR && !q.ReadRTR:
		err = ErrNoRTR
	case q.PeerToPeer:
		p.RTR, p.ReadRTR = true, !q.WriteRTR
		r.PeerToPeer, r.WriteRTR, r.ReadRTR = true, q.WriteRTR, !q.WriteRTR
	}
	if err != nil {
		return q.NewReject(nil), p, err
	}
	return r, p, nil
}

// NewReject returns the reply that rejects the request.
func (h *Handshake) NewReject(private []byte) Handshake {
	return Handshake{Reply: true, Reject: true, Revision: h.Revision, CRC: h.CRC, Enhanced: h.Enhanced, Private: private}
}

// FinishRequest returns the properties of the connection that the initiator has after the reply r to
// its request q.
func FinishRequest(q, r *Handshake) (Params, error) {
	p := Params{
		Initiator: true, CRC: q.CRC || r.CRC, IRD: limitReads(255, q.IRD), ORD: limitReads(255, q.ORD), Extended: q.Extended && r.Extended,
	}
	switch {
	case r.Reject:
		return p, ErrRejected
	case r.Markers:
		return p, ErrMarkers
	case !r.Enhanced:
		return p, nil
	case r.ORD != NoLimit && r.ORD > q.IRD:
		return p, fmt.Errorf("%w: %d, limit %d", ErrReads, r.ORD, q.IRD)
	}
	p.ORD = limitReads(p.ORD, r.IRD)
	if q.PeerToPeer && r.PeerToPeer {
		p.RTR, p.ReadRTR = true, !r.WriteRTR
		if !r.WriteRTR && !r.ReadRTR {
			return p, ErrNoRTR
		}
	}
	return p, nil
}

// limitReads returns the smaller of the own number of READs and the peer's.
func limitReads(own uint8, peer uint16) uint8 {
	if peer == NoLimit {
		return own
	}
	return uint8(min(uint16(own), peer))
}
