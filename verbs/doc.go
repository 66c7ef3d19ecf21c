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
// Every send request produces a completion in the queue pair's SendCQ, and every
// receive that a message consumes one in its RecvCQ. Both queues must be deep enough.
// A program that wants fewer completions creates its queue pair with
// QPInitAttr.SelectiveSignaling: then a successful send request produces one only if
// it has SendSignaled. A failed request always does. (In libibverbs this is the
// default: sq_sig_all = 0.)
//
// # Errors
//
// A call that is used wrongly returns an *OpError. Work that fails later produces a
// WC with a status, and the details in WC.Failure. Malformed packets are counted and
// dropped.
//
// # Ownership
//
// The memory of a work request belongs to the adapter from the post to the
// completion. The lists of work requests and their SGLists may be reused when the
// post returns.
//
// # Close
//
// Every object has a Close, which returns ErrBusy while other objects depend on it,
// and nil if the object is closed already. Methods of a closed object that return an
// error return ErrClosed.
package verbs
