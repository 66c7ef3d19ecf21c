package rnic

// counterNames lists every counter of a queue pair and of a device: first those
// of rdma_rxe in its order (Linux,
// drivers/infiniband/sw/rxe/rxe_hw_counters.c), then those named by mlx5
// (Documentation/ABI/stable/sysfs-class-infiniband), then our own.
var counterNames = []struct {
	CounterInfo
	qp     func(*QPCounters) *uint64 // counted by queue pairs; the device has the sum
	device func(*Counters) *uint64   // counted by the device only
}{
	{c("sent_pkts", "Packets sent, with retransmissions and acknowledgements."), func(c *QPCounters) *uint64 { return &c.SentPkts }, nil},
	{c("rcvd_pkts", "Packets that reached a queue pair."), func(c *QPCounters) *uint64 { return &c.RcvdPkts }, nil},
	{c("duplicate_request", "Requests received before: an acknowledgement was lost or late."), func(c *QPCounters) *uint64 { return &c.DuplicateRequest }, nil},
	{c("out_of_seq_request", "Gaps in the PSNs of requests; a gap counts once."), func(c *QPCounters) *uint64 { return &c.OutOfSeqRequest }, nil},
	{c("rcvd_rnr_err", "RNR NAKs received: the peer had no receive posted."), func(c *QPCounters) *uint64 { return &c.RcvdRNRErr }, nil},
	{c("send_rnr_err", "RNR NAKs sent: no receive was posted here."), func(c *QPCounters) *uint64 { return &c.SendRNRErr }, nil},
	{c("rcvd_seq_err", "Sequence NAKs received: the peer missed a packet."), func(c *QPCounters) *uint64 { return &c.RcvdSeqErr }, nil},
	{c("ack_deferred", "Acknowledgements saved by a later one."), func(c *QPCounters) *uint64 { return &c.AckDeferred }, nil},
	{c("retry_exceeded_err", "Requests that failed after retry_cnt retransmissions without a response."), func(c *QPCounters) *uint64 { return &c.RetryExceededErr }, nil},
	{c("retry_rnr_exceeded_err", "Requests that failed after rnr_retry RNR NAKs."), func(c *QPCounters) *uint64 { return &c.RetryRNRExceededErr }, nil},
	{c("completer_retry_err", "Retransmissions from an earlier PSN on (go-back-N)."), func(c *QPCounters) *uint64 { return &c.CompleterRetryErr }, nil},
	{c("send_err", "Requests that completed with an error other than a flush."), func(c *QPCounters) *uint64 { return &c.SendErr }, nil},
	{c("link_downed", "Permanent failures of the socket."), nil, func(c *Counters) *uint64 { return &c.LinkDowned }},
	{c("rdma_sends", "SENDs and WRITEs with immediate, which consume a receive; on UC all WRITEs."), func(c *QPCounters) *uint64 { return &c.RDMASends }, nil},
	{c("rdma_recvs", "Receives completed by a message."), func(c *QPCounters) *uint64 { return &c.RDMARecvs }, nil},

	{c("local_ack_timeout_err", "Local ACK timeouts."), func(c *QPCounters) *uint64 { return &c.Timeouts }, nil},
	{c("np_cnp_sent", "Congestion notification packets sent."), func(c *QPCounters) *uint64 { return &c.CNPSent }, nil},
	{c("rp_cnp_handled", "Congestion notification packets received."), func(c *QPCounters) *uint64 { return &c.CNPReceived }, nil},
	{c("np_ecn_marked_roce_packets", "Packets that arrived with an ECN congestion mark."), func(c *QPCounters) *uint64 { return &c.ECNMarked }, nil},

	{c("sent_bytes", "Bytes of payload sent."), func(c *QPCounters) *uint64 { return &c.SentBytes }, nil},
	{c("rcvd_bytes", "Bytes of payload received."), func(c *QPCounters) *uint64 { return &c.RcvdBytes }, nil},
	{c("send_seq_err", "Sequence NAKs sent: a packet of the peer was missing."), func(c *QPCounters) *uint64 { return &c.SendSeqErr }, nil},
	{c("retransmitted_pkts", "Packets retransmitted."), func(c *QPCounters) *uint64 { return &c.Retransmitted }, nil},
	{c("probes", "Acknowledgements requested before the timeout."), func(c *QPCounters) *uint64 { return &c.Probes }, nil},
	{c("credit_stalls", "Messages that waited for an end-to-end credit."), func(c *QPCounters) *uint64 { return &c.CreditStalls }, nil},
	{c("unsignaled", "Send requests that succeeded without a completion: they were not signaled."), func(c *QPCounters) *uint64 { return &c.Unsignaled }, nil},
	{c("icrc_member", "Packets with an ICRC that is valid for another IPv4 identification."), nil, func(c *Counters) *uint64 { return &c.ICRCMember }},
	{c("events_lost", "Asynchronous events lost because the program did not read them."), nil, func(c *Counters) *uint64 { return &c.EventsLost }},
}

// c abbreviates a literal in the tables.
func c(name, meaning string) CounterInfo { return CounterInfo{name, meaning} }

var qpCounters, deviceCounters = splitCounters()

// splitCounters makes the tables of the two kinds of Counters.
func splitCounters() (ofQP counterTable[QPCounters], ofDevice counterTable[Counters]) {
	for _, n := range counterNames {
		field := n.device
		if n.qp != nil {
			ofQP = append(ofQP, counter[QPCounters]{n.CounterInfo, n.qp})
			field = func(c *Counters) *uint64 { return n.qp(&c.QPCounters) }
		}
		ofDevice = append(ofDevice, counter[Counters]{n.CounterInfo, field})
	}
	return ofQP, ofDevice
}

var linkCounters = counterTable[LinkCounters]{
	{c("send_calls", "System calls that sent packets."), func(s *LinkCounters) *uint64 { return &s.SendCalls }},
	{c("sent_packets", "Packets passed to the system."), func(s *LinkCounters) *uint64 { return &s.SentPackets }},
	{c("sent_bytes", "Bytes of those packets, BTH to ICRC."), func(s *LinkCounters) *uint64 { return &s.SentBytes }},
	{c("receive_calls", "System calls that received packets."), func(s *LinkCounters) *uint64 { return &s.ReceiveCalls }},
	{c("received_datagrams", "Buffers received; with GRO a buffer has several packets."), func(s *LinkCounters) *uint64 { return &s.ReceivedDatagrams }},
	{c("received_packets", "Packets received."), func(s *LinkCounters) *uint64 { return &s.ReceivedPackets }},
	{c("received_bytes", "Bytes of those packets, BTH to ICRC."), func(s *LinkCounters) *uint64 { return &s.ReceivedBytes }},
	{c("receive_overflow", "Datagrams lost because the receive buffer was full."), func(s *LinkCounters) *uint64 { return &s.ReceiveOverflow }},
	{c("send_blocked", "Sends that waited for space in the send buffer."), func(s *LinkCounters) *uint64 { return &s.SendBlocked }},
	{c("send_too_big", "Packets above the MTU of the path."), func(s *LinkCounters) *uint64 { return &s.SendTooBig }},
	{c("send_no_buffers", "Packets refused because the system had no memory."), func(s *LinkCounters) *uint64 { return &s.SendNoBuffers }},
	{c("send_denied", "Packets refused by a firewall or for lack of permission."), func(s *LinkCounters) *uint64 { return &s.SendDenied }},
	{c("send_unreachable", "Packets without a route, or to an unreachable host."), func(s *LinkCounters) *uint64 { return &s.SendUnreachable }},
	{c("send_failed", "Packets refused for any other reason."), func(s *LinkCounters) *uint64 { return &s.SendFailed }},
	{c("icmp_errors", "ICMP errors for earlier packets, such as port unreachable."), func(s *LinkCounters) *uint64 { return &s.ICMPErrors }},
	{c("gso_fallbacks", "Times that segmentation offload failed and was switched off."), func(s *LinkCounters) *uint64 { return &s.GSOFallbacks }},
}

var faultCounters = counterTable[FaultCounters]{
	{c("lost", "Packets dropped by the loss model."), func(f *FaultCounters) *uint64 { return &f.Lost }},
	{c("dropped", "Packets dropped by rules."), func(f *FaultCounters) *uint64 { return &f.Dropped }},
	{c("overflow", "Packets dropped because too many were delayed."), func(f *FaultCounters) *uint64 { return &f.Overflow }},
	{c("duplicated", "Packets duplicated."), func(f *FaultCounters) *uint64 { return &f.Duplicated }},
	{c("corrupted", "Packets with a bit inverted."), func(f *FaultCounters) *uint64 { return &f.Corrupted }},
	{c("delayed", "Packets delayed."), func(f *FaultCounters) *uint64 { return &f.Delayed }},
	{c("reordered", "Packets sent ahead of delayed ones."), func(f *FaultCounters) *uint64 { return &f.Reordered }},
	{c("marked", "Packets marked with ECN."), func(f *FaultCounters) *uint64 { return &f.Marked }},
}
