package rnic

// A description is the meaning of a counter, by its name in JSON.
type description struct{ name, text string }

// counterNames lists every counter of a queue pair and of a device: first those
// of rdma_rxe in its order (Linux,
// drivers/infiniband/sw/rxe/rxe_hw_counters.c), then those named by mlx5
// (Documentation/ABI/stable/sysfs-class-infiniband), then our own.
var counterNames = []description{
	{"sent_pkts", "Packets sent, with retransmissions and acknowledgements."},
	{"rcvd_pkts", "Packets that reached a queue pair."},
	{"duplicate_request", "Requests received before: an acknowledgement was lost or late."},
	{"out_of_seq_request", "Gaps in the PSNs of requests; a gap counts once."},
	{"rcvd_rnr_err", "RNR NAKs received: the peer had no receive posted."},
	{"send_rnr_err", "RNR NAKs sent: no receive was posted here."},
	{"rcvd_seq_err", "Sequence NAKs received: the peer missed a packet."},
	{"ack_deferred", "Acknowledgements saved by a later one."},
	{"retry_exceeded_err", "Requests that failed after retry_cnt retransmissions without a response."},
	{"retry_rnr_exceeded_err", "Requests that failed after rnr_retry RNR NAKs."},
	{"completer_retry_err", "Retransmissions from an earlier PSN on (go-back-N)."},
	{"send_err", "Requests that completed with an error other than a flush."},
	{"link_downed", "Permanent failures of the socket."},
	{"rdma_sends", "SENDs and WRITEs with immediate, which consume a receive; on UC all WRITEs."},
	{"rdma_recvs", "Receives completed by a message."},

	{"local_ack_timeout_err", "Local ACK timeouts."},
	{"np_cnp_sent", "Congestion notification packets sent."},
	{"rp_cnp_handled", "Congestion notification packets received."},
	{"np_ecn_marked_roce_packets", "Packets that arrived with an ECN congestion mark."},

	{"sent_bytes", "Bytes of payload sent."},
	{"rcvd_bytes", "Bytes of payload received."},
	{"send_seq_err", "Sequence NAKs sent: a packet of the peer was missing."},
	{"retransmitted_pkts", "Packets retransmitted."},
	{"probes", "Acknowledgements requested before the timeout."},
	{"sent_sacks", "Selective acknowledgements sent: packets arrived ahead of a missing one."},
	{"rcvd_sacks", "Selective acknowledgements received."},
	{"kept_requests", "Request packets that arrived ahead of a missing one and were kept."},
	{"credit_stalls", "Messages that waited for an end-to-end credit."},
	{"unsignaled", "Send requests that succeeded without a completion: they were not signaled."},
	{"rp_rate_reductions", "Reductions of rate or window by congestion control."},
	{"pacing_stalls", "Times that packets waited for the pacer of congestion control."},
	{"icrc_member", "Packets with an ICRC that is valid for another IPv4 identification."},
	{"events_lost", "Asynchronous events lost because the program did not read them."},
}

var linkCounterNames = []description{
	{"send_calls", "System calls that sent packets."},
	{"sent_packets", "Packets passed to the system."},
	{"sent_bytes", "Bytes of those packets, BTH to ICRC."},
	{"receive_calls", "System calls that received packets."},
	{"received_datagrams", "Buffers received; with GRO a buffer has several packets."},
	{"received_packets", "Packets received."},
	{"received_bytes", "Bytes of those packets, BTH to ICRC."},
	{"receive_overflow", "Datagrams lost because the receive buffer was full."},
	{"send_blocked", "Sends that waited for space in the send buffer."},
	{"send_too_big", "Packets above the MTU of the path."},
	{"send_no_buffers", "Packets refused because the system had no memory."},
	{"send_denied", "Packets refused by a firewall or for lack of permission."},
	{"send_unreachable", "Packets without a route, or to an unreachable host."},
	{"send_failed", "Packets refused for any other reason."},
	{"icmp_errors", "ICMP errors for earlier packets, such as port unreachable."},
	{"gso_fallbacks", "Times that segmentation offload failed and was switched off."},
	{"shared_sent_packets", "Packets sent through shared memory, a part of sent_packets."},
	{"shared_sent_bytes", "Bytes of those packets, BTH to ICRC."},
	{"shared_received_packets", "Packets received through shared memory, a part of received_packets."},
	{"shared_received_bytes", "Bytes of those packets, BTH to ICRC."},
	{"shared_lost", "Packets lost because shared memory was full."},
	{"shared_late", "Rings in shared memory read before all earlier packets of the socket."},
}

var faultCounterNames = []description{
	{"lost", "Packets dropped by the loss model."},
	{"dropped", "Packets dropped by rules."},
	{"overflow", "Packets dropped because too many were delayed."},
	{"duplicated", "Packets duplicated."},
	{"corrupted", "Packets with a bit inverted."},
	{"delayed", "Packets delayed."},
	{"reordered", "Packets sent ahead of delayed ones."},
	{"marked", "Packets marked with ECN."},
}

var (
	qpCounters     = newCounterTable[QPCounters](counterNames)
	deviceCounters = newCounterTable[Counters](counterNames)
	linkCounters   = newCounterTable[LinkCounters](linkCounterNames)
	faultCounters  = newCounterTable[FaultCounters](faultCounterNames)
)
