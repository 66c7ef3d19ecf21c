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
	{c("sent_pkts", "Packets sent, repeated ones and acknowledgements too."), func(c *QPCounters) *uint64 { return &c.SentPkts }, nil},
	{c("rcvd_pkts", "Packets that reached a queue pair."), func(c *QPCounters) *uint64 { return &c.RcvdPkts }, nil},
	{c("duplicate_request", "Requests that had been received before: an acknowledgement was lost or late."), func(c *QPCounters) *uint64 { return &c.DuplicateRequest }, nil},
	{c("out_of_seq_request", "Gaps in the PSNs of requests: each counts once, however many packets came behind it."), func(c *QPCounters) *uint64 { return &c.OutOfSeqRequest }, nil},
	{c("rcvd_rnr_err", "RNR NAKs received: the peer had no receive posted."), func(c *QPCounters) *uint64 { return &c.RcvdRNRErr }, nil},
	{c("send_rnr_err", "RNR NAKs sent: we had no receive posted."), func(c *QPCounters) *uint64 { return &c.SendRNRErr }, nil},
	{c("rcvd_seq_err", "Sequence NAKs received: the peer missed a packet of ours."), func(c *QPCounters) *uint64 { return &c.RcvdSeqErr }, nil},
	{c("ack_deferred", "Acknowledgements saved because a later one stood for them."), func(c *QPCounters) *uint64 { return &c.AckDeferred }, nil},
	{c("retry_exceeded_err", "Requests that failed because nobody answered for retry_cnt repetitions."), func(c *QPCounters) *uint64 { return &c.RetryExceededErr }, nil},
	{c("retry_rnr_exceeded_err", "Requests that failed because the peer had no receive for rnr_retry repetitions."), func(c *QPCounters) *uint64 { return &c.RetryRNRExceededErr }, nil},
	{c("completer_retry_err", "Times that sending went back to an earlier PSN."), func(c *QPCounters) *uint64 { return &c.CompleterRetryErr }, nil},
	{c("send_err", "Requests that completed with an error other than a flush."), func(c *QPCounters) *uint64 { return &c.SendErr }, nil},
	{c("link_downed", "Times that the socket failed for good."), nil, func(c *Counters) *uint64 { return &c.LinkDowned }},
	{c("rdma_sends", "Sends and writes with immediate, the messages that take a receive at the peer; on UC writes, too."), func(c *QPCounters) *uint64 { return &c.RDMASends }, nil},
	{c("rdma_recvs", "Receives that a message completed."), func(c *QPCounters) *uint64 { return &c.RDMARecvs }, nil},

	{c("local_ack_timeout_err", "Times that the local ACK timeout passed without an answer."), func(c *QPCounters) *uint64 { return &c.Timeouts }, nil},
	{c("np_cnp_sent", "Congestion notification packets sent."), func(c *QPCounters) *uint64 { return &c.CNPSent }, nil},
	{c("rp_cnp_handled", "Congestion notification packets received."), func(c *QPCounters) *uint64 { return &c.CNPReceived }, nil},
	{c("np_ecn_marked_roce_packets", "Packets that arrived with the congestion mark of ECN."), func(c *QPCounters) *uint64 { return &c.ECNMarked }, nil},

	{c("sent_bytes", "Bytes of payload sent."), func(c *QPCounters) *uint64 { return &c.SentBytes }, nil},
	{c("rcvd_bytes", "Bytes of payload received."), func(c *QPCounters) *uint64 { return &c.RcvdBytes }, nil},
	{c("send_seq_err", "Sequence NAKs sent: we missed a packet of the peer."), func(c *QPCounters) *uint64 { return &c.SendSeqErr }, nil},
	{c("retransmitted_pkts", "Packets sent again."), func(c *QPCounters) *uint64 { return &c.Retransmitted }, nil},
	{c("probes", "Times that an acknowledgement was asked for before the timeout."), func(c *QPCounters) *uint64 { return &c.Probes }, nil},
	{c("credit_stalls", "Times that a message waited for an end-to-end credit."), func(c *QPCounters) *uint64 { return &c.CreditStalls }, nil},
	{c("unsignaled", "Send requests that succeeded without a completion, because they were not signaled."), func(c *QPCounters) *uint64 { return &c.Unsignaled }, nil},
	{c("icrc_member", "Packets whose ICRC holds for another IPv4 identification than assumed; a socket does not show the real one."), nil, func(c *Counters) *uint64 { return &c.ICRCMember }},
	{c("events_lost", "Asynchronous events lost because the program did not ask for them."), nil, func(c *Counters) *uint64 { return &c.EventsLost }},
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
	{c("send_calls", "System calls that sent something."), func(s *LinkCounters) *uint64 { return &s.SendCalls }},
	{c("sent_packets", "Packets handed to the system."), func(s *LinkCounters) *uint64 { return &s.SentPackets }},
	{c("sent_bytes", "Bytes of those packets, BTH to ICRC."), func(s *LinkCounters) *uint64 { return &s.SentBytes }},
	{c("receive_calls", "System calls that received something."), func(s *LinkCounters) *uint64 { return &s.ReceiveCalls }},
	{c("received_datagrams", "Buffers received; GRO puts several packets into one."), func(s *LinkCounters) *uint64 { return &s.ReceivedDatagrams }},
	{c("received_packets", "Packets received."), func(s *LinkCounters) *uint64 { return &s.ReceivedPackets }},
	{c("received_bytes", "Bytes of those packets, BTH to ICRC."), func(s *LinkCounters) *uint64 { return &s.ReceivedBytes }},
	{c("receive_overflow", "Datagrams lost because the receive buffer was full: enlarge it."), func(s *LinkCounters) *uint64 { return &s.ReceiveOverflow }},
	{c("send_blocked", "Sends that waited for room in the send buffer."), func(s *LinkCounters) *uint64 { return &s.SendBlocked }},
	{c("send_too_big", "Packets above the MTU of the path."), func(s *LinkCounters) *uint64 { return &s.SendTooBig }},
	{c("send_no_buffers", "Packets that the system had no memory for."), func(s *LinkCounters) *uint64 { return &s.SendNoBuffers }},
	{c("send_denied", "Packets that a firewall or a missing permission refused."), func(s *LinkCounters) *uint64 { return &s.SendDenied }},
	{c("send_unreachable", "Packets without a route or an answering host."), func(s *LinkCounters) *uint64 { return &s.SendUnreachable }},
	{c("send_failed", "Packets refused for any other reason."), func(s *LinkCounters) *uint64 { return &s.SendFailed }},
	{c("icmp_errors", "ICMP errors that earlier packets caused, as port unreachable."), func(s *LinkCounters) *uint64 { return &s.ICMPErrors }},
	{c("gso_fallbacks", "Times that segmentation offload was switched off because it failed."), func(s *LinkCounters) *uint64 { return &s.GSOFallbacks }},
}

var faultCounters = counterTable[FaultCounters]{
	{c("lost", "Packets lost by the model of loss."), func(f *FaultCounters) *uint64 { return &f.Lost }},
	{c("dropped", "Packets dropped by rules."), func(f *FaultCounters) *uint64 { return &f.Dropped }},
	{c("overflow", "Packets dropped because too many were held back already."), func(f *FaultCounters) *uint64 { return &f.Overflow }},
	{c("duplicated", "Copies made."), func(f *FaultCounters) *uint64 { return &f.Duplicated }},
	{c("corrupted", "Packets with a bit inverted."), func(f *FaultCounters) *uint64 { return &f.Corrupted }},
	{c("delayed", "Packets held back."), func(f *FaultCounters) *uint64 { return &f.Delayed }},
	{c("reordered", "Packets sent ahead of those held back."), func(f *FaultCounters) *uint64 { return &f.Reordered }},
	{c("marked", "Packets given the congestion mark of ECN."), func(f *FaultCounters) *uint64 { return &f.Marked }},
}
