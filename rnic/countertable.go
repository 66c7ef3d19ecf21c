package rnic

import (
	"iter"
	"reflect"
)

// Counters are the counters of a device, except drops and link counters. In
// JSON they are one flat object with the names of Linux's hw_counters of
// rdma_rxe; counters that rxe lacks have the name of mlx5, if it has one.
type Counters struct {
	QPCounters        // sums over all queue pairs, closed ones too
	LinkDowned uint64 `json:"link_downed"` // times that the socket failed
	ICRCMember uint64 `json:"icrc_member"` // packets whose ICRC is valid for an unexpected IPv4 identification
	EventsLost uint64 `json:"events_lost"` // asynchronous events dropped because the program did not take them
}

// QPCounters are the counters of one queue pair: in JSON the same names as
// Counters, without those that only a device has.
type QPCounters struct {
	SentPkts            uint64 `json:"sent_pkts"`
	RcvdPkts            uint64 `json:"rcvd_pkts"`
	SentBytes           uint64 `json:"sent_bytes"`         // payload
	RcvdBytes           uint64 `json:"rcvd_bytes"`         // payload
	DuplicateRequest    uint64 `json:"duplicate_request"`  // requests received before
	OutOfSeqRequest     uint64 `json:"out_of_seq_request"` // gaps in the request PSNs, each counted once
	RcvdRNRErr          uint64 `json:"rcvd_rnr_err"`       // RNR NAKs received
	SendRNRErr          uint64 `json:"send_rnr_err"`       // RNR NAKs sent
	RcvdSeqErr          uint64 `json:"rcvd_seq_err"`       // sequence NAKs received
	SendSeqErr          uint64 `json:"send_seq_err"`       // sequence NAKs sent
	AckDeferred         uint64 `json:"ack_deferred"`       // acknowledgements saved by coalescing
	RetryExceededErr    uint64 `json:"retry_exceeded_err"`
	RetryRNRExceededErr uint64 `json:"retry_rnr_exceeded_err"`
	CompleterRetryErr   uint64 `json:"completer_retry_err"`   // go-backs
	SendErr             uint64 `json:"send_err"`              // send requests that failed
	Retransmitted       uint64 `json:"retransmitted_pkts"`    // retransmitted packets
	Timeouts            uint64 `json:"local_ack_timeout_err"` // local ACK timeouts
	Probes              uint64 `json:"probes"`                // probes sent before the timeout
	RDMASends           uint64 `json:"rdma_sends"`            // messages sent, without retransmissions
	RDMARecvs           uint64 `json:"rdma_recvs"`            // messages received
	CNPSent             uint64 `json:"np_cnp_sent"`
	CNPReceived         uint64 `json:"rp_cnp_handled"`
	ECNMarked           uint64 `json:"np_ecn_marked_roce_packets"` // packets that arrived with the congestion mark
	CreditStalls        uint64 `json:"credit_stalls"`              // messages that waited for a credit
	Unsignaled          uint64 `json:"unsignaled"`                 // requests that succeeded without a completion
	RateReductions      uint64 `json:"rp_rate_reductions"`         // reductions by congestion control
	PacingStalls        uint64 `json:"pacing_stalls"`              // times that packets waited for the pacer
	SentSacks           uint64 `json:"sent_sacks"`                 // selective acknowledgements sent
	RcvdSacks           uint64 `json:"rcvd_sacks"`                 // selective acknowledgements received
	KeptRequests        uint64 `json:"kept_requests"`              // request packets kept that arrived ahead of the expected one
}

// LinkCounters are the counters of the socket. JSON names are the fields' in
// snake case.
type LinkCounters struct {
	SendCalls   uint64 `json:"send_calls"`   // system calls that sent something
	SentPackets uint64 `json:"sent_packets"` // RoCE packets handed to the system
	SentBytes   uint64 `json:"sent_bytes"`   // of those packets, BTH to ICRC

	// The receive counters lag while the link is readable, and are exact after
	// a ReadBatch has returned 0.
	ReceiveCalls      uint64 `json:"receive_calls"`      // system calls that received something
	ReceivedDatagrams uint64 `json:"received_datagrams"` // buffers received; GRO puts several packets into one
	ReceivedPackets   uint64 `json:"received_packets"`
	ReceivedBytes     uint64 `json:"received_bytes"`

	// Datagrams dropped because the socket's receive buffer or the portable
	// link's ring was full.
	ReceiveOverflow uint64 `json:"receive_overflow"`

	SendBlocked     uint64 `json:"send_blocked"`     // sends that had to wait for room in the send buffer
	SendTooBig      uint64 `json:"send_too_big"`     // packets above the path MTU (EMSGSIZE)
	SendNoBuffers   uint64 `json:"send_no_buffers"`  // packets the system had no memory for (ENOBUFS, ENOMEM), or no room in time
	SendDenied      uint64 `json:"send_denied"`      // packets a firewall or a permission refused (EPERM, EACCES)
	SendUnreachable uint64 `json:"send_unreachable"` // packets without a route or an answering host
	SendFailed      uint64 `json:"send_failed"`      // packets refused for any other reason
	ICMPErrors      uint64 `json:"icmp_errors"`      // errors of earlier packets that a later call reported (ECONNREFUSED)
	GSOFallbacks    uint64 `json:"gso_fallbacks"`    // times that segmentation offload was switched off because it failed

	// The part of the packets that passed through shared memory instead of the socket.
	SharedSentPackets     uint64 `json:"shared_sent_packets"`
	SharedSentBytes       uint64 `json:"shared_sent_bytes"`
	SharedReceivedPackets uint64 `json:"shared_received_packets"`
	SharedReceivedBytes   uint64 `json:"shared_received_bytes"`
	SharedLost            uint64 `json:"shared_lost"` // packets lost because a ring was full
	SharedLate            uint64 `json:"shared_late"` // rings that were read although earlier packets through the socket had not come
}

// FaultCounters count the effects of injected faults. JSON names are the
// fields' in snake case.
type FaultCounters struct {
	Lost       uint64 `json:"lost"`
	Dropped    uint64 `json:"dropped"`
	Overflow   uint64 `json:"overflow"`
	Duplicated uint64 `json:"duplicated"`
	Corrupted  uint64 `json:"corrupted"`
	Delayed    uint64 `json:"delayed"`
	Reordered  uint64 `json:"reordered"`
	Marked     uint64 `json:"marked"`
}

// All returns an iterator over the names, as in JSON, and values in the order of rxe, then our
// own.
func (c Counters) All() iter.Seq2[string, uint64] { return deviceCounters.all(reflect.ValueOf(c)) }

// All returns an iterator over the names, as in JSON, and values in the order of rxe, then our
// own.
func (c QPCounters) All() iter.Seq2[string, uint64] { return qpCounters.all(reflect.ValueOf(c)) }

// All returns an iterator over the names, as in JSON, and values: sending, receiving, then errors.
func (c LinkCounters) All() iter.Seq2[string, uint64] { return linkCounters.all(reflect.ValueOf(c)) }

// All returns an iterator over the names, as in JSON, and values, the most severe first.
func (c FaultCounters) All() iter.Seq2[string, uint64] { return faultCounters.all(reflect.ValueOf(c)) }

// CounterDescription describes a counter in a sentence. The name is one of Counters.All, or has
// the prefix "link_" or "fault_" before one of LinkCounters.All or FaultCounters.All, as in
// metrics. It is "" for an unknown name.
func CounterDescription(name string) string {
	for _, t := range []struct {
		prefix string
		table  counterTable
	}{{"", deviceCounters}, {"link_", linkCounters}, {"fault_", faultCounters}} {
		for _, c := range t.table {
			if t.prefix+c.name == name {
				return c.description
			}
		}
	}
	return ""
}

// A counter is a field of a struct of counters.
type counter struct {
	name, description string
	index             []int // of the field
}

// A counterTable lists the counters of a struct in the order in which tools show them.
type counterTable []counter

// newCounterTable returns the table of the fields of T, in the order of the descriptions of their
// JSON names.
func newCounterTable[T any](descriptions []description) (t counterTable) {
	index := map[string][]int{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		index[f.Tag.Get("json")] = f.Index
	}
	for _, d := range descriptions {
		if i := index[d.name]; i != nil {
			t = append(t, counter{d.name, d.text, i})
		}
	}
	return t
}

// all yields every counter with its value in the struct v.
func (t counterTable) all(v reflect.Value) iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for _, c := range t {
			if !yield(c.name, v.FieldByIndex(c.index).Uint()) {
				return
			}
		}
	}
}
