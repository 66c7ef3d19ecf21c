// Package rnic is an RDMA adapter in software: a device that a program opens
// on a UDP socket and uses through the interfaces of package verbs. It speaks
// RoCE v2, so its peers are other processes with this package, Linux's
// rdma_rxe, and real adapters.
//
// # Use
//
//	dev, err := rnic.Open(rnic.Options{})    // 127.x.y.z:4791, or Options.Addr
//	defer dev.Close()                        // takes everything with it, in any order
//	pd, err := dev.AllocPD()
//	cq, err := dev.CreateCQ(128)
//	qp, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq, RecvCQ: cq, Cap: ...})
//	mr, err := pd.RegMR(buf, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
//
//	local, err := verbs.LocalEndpoint(dev, qp, psn)   // a line of text for the peer
//	err = verbs.Connect(qp, local, remote, verbs.ConnectOptions{})
//
//	_, err = qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, ...}})
//	n, err := cq.Poll(wc)                    // looks and returns, or
//	n, err = cq.PollWait(ctx, wc)            // blocks until there is something
//
// All methods of all objects may be called from any goroutine. The example
// below is a whole program. One goroutine that looks after many queues makes
// them from a completion channel, dev.CreateCompChannel.
//
// # Environment
//
// What Options leave open, these variables fill in:
//
//	SOFTRNIC_ADDR    the address to open, or several to choose from, see ParseAddrs: "192.0.2.1",
//	                 "[2001:db8::1]:5000", "192.0.2.1:4791-4799", "127.0.0.0/8"
//	SOFTRNIC_IMPAIR  faults to inject into the link, see Device.SetImpair: "loss 1% seed 7"
//	SOFTRNIC_LINK    accelerations to do without: a list of nogso, nogro, nommsg, portable
//	SOFTRNIC_DEBUG   an endpoint for `softrnic stat` and others, see Device.ServeDebug: "auto"
//	SOFTRNIC_LOG     what to log to stderr: off, error, warn, info, debug
//
// # The engine
//
// A device has one shard, or several. A shard is a UDP socket with the queue
// pairs that live there, and with two rights:
//
//	                     the lock                      the token
//	             guards the queue pairs,       the right to read the socket:
//	             timers, and sending           one holder at a time
//
//	PostSend     for the call: packets leave   -
//	             before it returns
//	Poll         while packets are handled     for one look, if it is free
//	Wait         while packets are handled     the first waiter (leader), as long as
//	                                           it waits, also asleep in the socket;
//	                                           others (followers) are parked
//	service      while packets are handled     when nobody polls or waits
//
// So whoever waits does the adapter's work: a poller handles the packet it
// waits for in its own goroutine, and a blocked waiter is woken by the packet
// itself. When a leader has its event, it hands the token to a follower. A
// poller that finds the token with a sleeper wakes it and gets its turn.
//
// The service goroutine stands in for the processor of a real adapter. It
// makes remote writes, reads, acknowledgements and repetitions happen while
// the program computes or sleeps, and keeps away from the socket while someone
// polls. Options.NoService does without it: then nothing happens but in calls
// of Poll, CQ.Wait, PollWait, Progress and the posting verbs.
//
// Who waits on a completion channel takes part in none of this. It is parked,
// and whoever handles the packet lists the queue there and wakes it. If the channel
// has a handler, the service calls that instead at the end of its look, with no lock held.
//
// The token is taken before the lock; the locks of a completion queue and then
// of its channel come last. Acknowledgements that a batch of packets owes are gathered and leave
// behind the reply that the program may be about to post.
//
// # Failure
//
// Misuse of a call is a *verbs.OpError at once. Failed work is a completion
// that explains itself (verbs.WC.Why), with a line in the log (Options.Logger) and
// the queue pair's last packets there at level debug, in Device.InspectQP, and at the queue pair itself:
// every verbs.QP of this package is a *QP, so qp.(*rnic.QP).History() has them.
// A bad packet is counted under its reason and dropped (Device.Inspect). When the socket itself fails,
// EventDeviceFatal tells.
package rnic
