// Package verbs is the contract between programs and an RDMA adapter: the
// interfaces, work requests, completions, states and events of InfiniBand verbs
// in idiomatic Go. It imports nothing of this module, so that programs run on any
// adapter that implements it; package rnic is the software adapter.
//
// Names are those of libibverbs without the prefix: ibv_post_send is PostSend,
// IBV_WC_RETRY_EXC_ERR is WCRetryExcErr. Slices, contexts and errors replace C's
// chains of requests and errno:
//
//	dev, err := rnic.Open(rnic.Options{})           // ibv_open_device
//	pd, err := dev.AllocPD()                        // ibv_alloc_pd
//	mr, err := pd.RegMR(buf, verbs.AccessLocalWrite)
//	cq, err := dev.CreateCQ(128)
//	qp, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq, RecvCQ: cq, ...})
//	local, err := verbs.LocalEndpoint(dev, qp, psn) // exchanged with the peer by any means
//	err = verbs.Connect(qp, local, remote, verbs.ConnectOptions{})
//	n, err := qp.PostSend([]verbs.SendWR{{WRID: 1, Opcode: verbs.WRSend, SGList: ...}})
//	n, err = cq.Poll(wc)
//
// # Completions
//
// Every send request produces a completion in the queue pair's SendCQ, and every receive that
// a message takes one in its RecvCQ, so queues have to be deep enough for both. A program
// that wants fewer creates its queue pair with QPInitAttr.SelectiveSignaling: then a send request that
// succeeds completes only if it has SendSignaled. One that fails always completes. (In libibverbs the
// default is the other way round: sq_sig_all = 0.)
//
// # Errors
//
// Misuse of a call returns an *OpError at once. Work that fails later is reported
// as a WC with a status and its cause in WC.Failure. A malformed packet is neither: the
// adapter counts and drops it.
//
// # Ownership
//
// Memory named in a work request is the adapter's from the post to the
// completion. Lists of work requests and their SGLists are the caller's again
// when the post returns.
//
// # Close
//
// Every object ends with Close, which returns ErrBusy while other objects depend
// on it. Close is idempotent: on a closed object it returns nil. Other methods of
// a closed object return ErrClosed, where they return an error.
package verbs
