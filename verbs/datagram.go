package verbs

import "time"

// DatagramRDMA is what a UD queue pair is, too, if its adapter can do RDMA without a
// connection, and it was made with QPInitAttr.MaxDatagramRDMA: an extension, of which
// the InfiniBand specification has nothing, and which leaves the wire only between
// peers that have told each other their tokens.
//
// Reads, writes and atomics are posted as on an RC queue pair, with the peer's
// handle in SendWR.AH:
//
//	qp, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, MaxDatagramRDMA: 128, ...})
//	peer, err := qp.(verbs.DatagramRDMA).CreatePeer(verbs.PeerAttr{AH: ..., QPN: ..., Access: verbs.AccessRemoteRead})
//	... to the peer, by any means: peer.Token(); its own comes back
//	err = peer.Connect(token)
//	_, err = qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMARead, AH: peer, SGList: ..., RemoteAddr: ..., RKey: ...}})
//
// They differ from those of RC in that nothing is ordered: requests are carried out,
// and complete, in any order, each exactly once. SendFence delays one until all
// posted before it for that peer are complete. One that fails, because the peer
// refuses it or does not answer, fails alone, and the queue pair stays as it is.
type DatagramRDMA interface {
	QP

	// CreatePeer lets a peer access memory of the queue pair's protection
	// domain, as far as attr and the regions permit, and be accessed. Two
	// handles for one peer are two peers to the adapter.
	CreatePeer(attr PeerAttr) (PeerAH, error)
}

// PeerAttr says who a peer is and what it may do.
type PeerAttr struct {
	AH     AHAttr      // where it is
	QPN    uint32      // its queue pair: requests of others are dropped
	Access AccessFlags // what it may do: some of AccessRemote
	MTU    MTU         // of the path; 0: the port's

	// GiveUp is how long it may answer nothing until requests fail with
	// WCRetryExcErr; 0: 10 s.
	GiveUp time.Duration
}

// PeerAH is an address handle of one peer, for RDMA and atomics. Sends to it take an
// ordinary handle. Destroy lets the peer in no more, and completes what is under way
// with WCWRFlushErr; destroying twice is safe.
type PeerAH interface {
	AH

	// Token is what the peer has to show with every packet: random, and for it
	// alone. It goes there in Connect.
	Token() uint32

	// Connect says what we have to show, the peer's Token. Requests may be
	// posted then, and the peer's are answered.
	Connect(token uint32) error
}
