package qp

import "github.com/softrnic/softrnic/verbs"

// splitsWrite reports whether w is sent as one RDMA WRITE ONLY packet per MTU.
// This applies to multi-packet writes to a softrnic peer.
//
// In a segmented message the FIRST packet carries a RETH and MIDDLE and LAST do
// not, so their sizes differ. Generic segmentation offload (UDP GSO) requires
// packets of one size per buffer, so each segmented message would need at least
// two buffers, and a buffer costs more than its packets. WRITE ONLY packets
// have one size, also across messages.
//
// Any responder accepts them, because they are consecutive short writes. Two
// effects differ: each packet counts in the MSN, and each is checked by itself,
// so a write that exceeds its region may have been partly executed when it
// fails. All packets but the last have BTH.More set: with immediate data, the
// receive completion reports the total length, and no acknowledgement is urgent
// in the middle of a message. Writes of UC are not split, because they must
// arrive completely or not at all.
//
// The last packet of a write with immediate data is 4 bytes longer than others
// of the same payload. An application that streams such writes should make them
// 4 bytes shorter than a multiple of the MTU.
//
// For the same reason, read responses to softrnic peers are all ONLY packets,
// see sendResponse.
func (c *Core) splitsWrite(w *sendWQE) bool {
	return c.softrnicPeer && (w.op == verbs.WRRDMAWrite || w.op == verbs.WRRDMAWriteWithImm) && w.length > c.mtu
}
