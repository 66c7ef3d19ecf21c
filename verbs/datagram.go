package verbs

import "time"

// A DatagramRDMA is a UD queue pair with RDMA without a connection. A queue pair
// implements it if the adapter supports that and it was created with
// QPInitAttr.MaxDatagramRDMA. It is an extension of the InfiniBand specification,
// used only between peers that have exchanged tokens.
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
// Unlike on RC they are not ordered: requests are executed, and complete, in any
// order, each exactly once. SendFence delays a request until all requests posted
// before it for that peer are complete. A request that fails, because the peer
// rejects it or does not respond, does not affect others or the queue pair.
type DatagramRDMA interface {
	QP

	// CreatePeer creates a peer, which may access memory of the queue pair's
	// protection domain as far as attr and the regions permit, and be
	// accessed. Two handles of one peer are independent.
	CreatePeer(attr PeerAttr) (PeerAH, error)
}

// PeerAttr describes a peer and its permissions.
type PeerAttr struct {
	AH     AHAttr      // address vector of the peer
	QPN    uint32      // queue pair of the peer: requests of others are dropped
	Access AccessFlags // permissions of the peer, a subset of AccessRemote
	MTU    MTU         // of the path; 0: the port's

	// GiveUp is the time without a response after which requests fail with
	// WCRetryExcErr; 0 means 10 s.
	GiveUp time.Duration
}

// A PeerAH is an address handle of one peer, for RDMA and atomics; sends use an
// ordinary handle. Close ends the peer's access and completes outstanding requests
// with WCWRFlushErr. It is idempotent.
type PeerAH interface {
	AH

	// Token returns the random token that the peer must send with every packet.
	// The program transfers it for the peer's Connect.
	Token() uint32

	// Connect sets the peer's Token. From then on requests may be posted, and
	// those of the peer are served.
	Connect(token uint32) error
}
