// Package verbs is the contract between programs and an RDMA adapter: the
// interfaces, work requests, completions, states and events of InfiniBand
// verbs in Go's manner. It imports nothing of this module, so a program that
// is written against it runs on any adapter that implements it; rnic is the
// one in software.
//
// Names are libibverbs' own without the prefix: ibv_post_send is PostSend,
// IBV_WC_RETRY_EXC_ERR is WCRetryExcErr. What C says with chains, masks and
// errno, Go says with slices, contexts and errors:
//
//	dev, err := rnic.Open(rnic.Options{})           // ibv_open_device
//	pd, err := dev.AllocPD()                        // ibv_alloc_pd
//	mr, err := pd.RegMR(buf, verbs.AccessLocalWrite)
//	cq, err := dev.CreateCQ(128)
//	qp, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq, RecvCQ: cq, ...})
//	local, err := verbs.LocalEndpoint(dev, qp, psn) // to the peer, by any means; its own comes back
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
// They have three lanes. Misuse of a call returns an *OpError at once. Work
// that fails later is a WC with a status, and WC.Why tells its story. A bad
// packet is neither: the adapter counts it and drops it.
//
// # Ownership
//
// Memory named in a work request is the adapter's from the post to the
// completion. Lists of work requests and their SGLists are the caller's again
// when the post returns.
package verbs
