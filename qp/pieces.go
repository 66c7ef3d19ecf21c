package qp

import "github.com/softrnic/softrnic/verbs"

// splitsWrite tells whether w leaves as one WRITE ONLY for each packet, which it
// does towards a peer that is known to be an adapter like ours.
//
// The packets of a message are not of one size: FIRST carries a RETH, MIDDLE
// and LAST do not. The system's segmentation offload takes only packets of one
// size in one buffer, so each message would cost two of them or more, and a
// buffer costs more than the packets in it. Pieces are all of one size, across
// messages, too.
//
// Any responder takes them, because they are short writes one after the other.
// What differs is that each counts in the MSN, and that each is checked by
// itself: of a write that ends beyond its region, what lies in the region may
// have been written when it fails. All but the last are marked, because with
// immediate data, which that one brings, the receiver is told how long the write
// is altogether, and because nobody waits for an acknowledgement amid a message.
// Writes of UC stay whole, because they arrive whole or not at all.
//
// The last piece of such a write is 4 bytes longer than others of its payload,
// so who fills pipes with them does well to make them 4 bytes shorter than a
// multiple of the MTU.
//
// For the same reason read responses of such peers are all ONLY, see
// sendResponse.
func (c *Core) splitsWrite(w *sendWQE) bool {
	return c.softrnicPeer && (w.op == verbs.WRRDMAWrite || w.op == verbs.WRRDMAWriteWithImm) && w.length > c.mtu
}
