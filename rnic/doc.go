// Package rnic is an RDMA adapter in software: a device that a program opens
// on a UDP socket and uses through the interfaces of package verbs. It speaks
// RoCE v2, so its peers are other processes with this package, Linux's
// rdma_rxe, and real adapters.
//
// # Use
//
//	dev, err := rnic.Open(rnic.Options{})    // 127.x.y.z:4791, or Options.Addr
//	defer dev.Close()                        // closes all its objects as well
//	pd, err := dev.AllocPD()
//	cq, err := dev.CreateCQ(128)
//	qp, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: cq, RecvCQ: cq, Cap: ...})
//	mr, err := pd.RegMR(buf, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
//
//	local, err := verbs.LocalEndpoint(dev, qp, psn)   // a line of text for the peer
//	err = verbs.Connect(qp, local, remote, verbs.ConnectOptions{})
//
//	_, err = qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, ...}})
//	n, err := cq.Poll(wc)                    // does not block, or
//	n, err = cq.PollWait(ctx, wc)            // blocks until there is a completion
//
// All methods of all objects may be called from any goroutine. The example
// below is a complete program. A goroutine that serves many queues creates them
// from a completion channel, see Device.CreateCompChannel.
//
// # Environment
//
// These variables set options that are zero in Options:
//
//	SOFTRNIC_ADDR    the address to open, or several to choose from, see Options.Addrs: "192.0.2.1",
//	                 "[2001:db8::1]:5000", "192.0.2.1:4791-4799", "127.0.0.0/8"
//	SOFTRNIC_SHARE   1: share the address with other processes, see Options.Share
//	SOFTRNIC_IMPAIR  faults to inject into the link, see Device.SetImpair: "loss 1% seed 7"
//	SOFTRNIC_ICM     cache of contexts of hardware adapters: "32,1us", see ICM
//	SOFTRNIC_CONGESTION  congestion control of connections, see Options.Congestion: "auto"
//	SOFTRNIC_WIRE    the protocol, see Options.Wire: "iwarp"
//	SOFTRNIC_LINK    accelerations to disable: a list of nogso, nogro, nommsg, portable, noshm
//	SOFTRNIC_DEBUG   an endpoint for `softrnic stat` and others, see Device.ServeDebug: "auto"
//	SOFTRNIC_LOG     the log level on stderr: off, error, warn, info, debug
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
//	Poll         while packets are handled     for one read, if it is free
//	Wait         while packets are handled     the first waiter (leader), as long as
//	                                           it waits, also asleep in the socket;
//	                                           others (followers) are parked
//	service      while packets are handled     while no goroutine polls or waits
//
// The waiter does the adapter's work: a poller handles the packet it waits for
// in its own goroutine, and a blocked waiter is woken by the packet itself. A
// leader that is satisfied offers the token to a follower (the baton). A poller
// that repeatedly finds the token with a sleeping leader wakes it and takes over.
//
// The service goroutine stands in for the processor of a hardware adapter: it
// handles remote writes and reads, acknowledgements and retransmissions while
// the program computes or sleeps, and stays off the socket while the program
// polls. A monitor goroutine starts it. With Options.NoService the device makes
// progress only in calls of Poll, CQ.Wait, PollWait, Progress and the posting
// verbs.
//
// The token is one word (token.go). Its states, and the transitions:
//
//	state               event                                      next
//	free                Poll on an empty CQ: acquire               polling
//	free                Wait or PollWait: acquire                  leading
//	free                no poll for a while (monitor): acquire     serving
//	free                SetImpair, StartCapture: seize             seized
//	polling             the read is done: release                  free
//	leading             spin budget used up: beginSleep            leading, asleep
//	leading             satisfied, context ended, CQ failed, code of
//	                    the program panics, or a seizer waits:
//	                    release                                    free
//	leading, asleep     readable, timer due, Wake: endSleep        leading
//	leading, asleep     frequent polls, or a seizer: displace      leading, displaced
//	leading, displaced  endSleep; the leader releases it, follows  leading
//	serving             spin budget used up: beginSleep            serving, asleep
//	serving             frequent polls, or a waiter: recall        serving, recalled
//	serving             a waiter follows, a seizer waits, or the
//	                    device closes: release                     free
//	serving, asleep     readable, timer due, Wake: endSleep        serving
//	serving, asleep     polls, a waiter or a seizer: displace      serving, recalled
//	serving, recalled   release                                    free
//	seized              the link is replaced: release              free
//
// A release offers the baton to a follower, but that of a poller if there is a
// service: followers stay parked while the program polls, and the service hands the
// token to one when that ends. While a seizer waits, nobody else takes the token.
//
// A waiter on a completion channel never takes the token. It parks until the
// goroutine that handles the packet lists the queue there and wakes it. If the
// channel has a handler, the service calls it at the end of each poll, with no
// lock held.
//
// Code of the program runs in a poller or leader with the token at most: its
// context, and its log handler, which gets the records of a section when the lock
// is released. If it panics the token is released, and the program's call panics.
//
// The token is taken before the lock; the locks of a completion queue and then
// of its channel come last. Acknowledgements are coalesced per batch of packets,
// and piggybacked on a reply that the program is about to post.
//
// # How a packet travels
//
//	QP.PostSend           qp.go               CQ.Poll, PollWait   cq.go, cqwait.go
//	   | the lock                                | the token        wait.go
//	   v                                         v
//	qp.Core.PostSend      package qp          pollSocket          progress.go
//	   v                                         | reads a batch, then the lock
//	drainQP               shard.go               v
//	   | builds packets into the batch        handleDatagram      progress.go
//	   v                                         | headers, ICRC, queue pair
//	flush                 shard.go               v
//	   v                                      qp.Core.HandlePacket
//	link.Conn.WriteBatch  internal/link          v
//	                                          qpHost.Complete     qphost.go
//	                                             v
//	                                          pushCompletion      cq.go
//	                                             v
//	                                          drainActive, drainAcks, flush: replies
//
// # Failure
//
// A call that is used wrongly returns a *verbs.OpError. Failed work is a
// completion with the details in verbs.WC.Failure; the log (Options.Logger) has it
// at level debug, with the last packets of the queue pair, which Device.InspectQP
// returns as well. A bad packet is dropped and counted under its reason
// (Device.Inspect). When the socket itself fails, the device raises
// EventDeviceFatal.
package rnic
