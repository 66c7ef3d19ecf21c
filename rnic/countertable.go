package rnic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
)

// Counters are the counters of a device, except drops and link counters. In
// JSON they are one flat object with the names of Linux's hw_counters of
// rdma_rxe; counters that rxe lacks have the name of mlx5, if it has one.
type Counters struct {
	QPCounters        // sums over all queue pairs, destroyed ones too
	LinkDowned uint64 // times that the socket failed
	ICRCMember uint64 // packets whose ICRC is valid for an unexpected IPv4 identification
	EventsLost uint64 // asynchronous events dropped because the program did not take them
}

// QPCounters are the counters of one queue pair: in JSON the same names as
// Counters, without those that only a device has.
type QPCounters struct {
	SentPkts             uint64
	RcvdPkts             uint64
	SentBytes            uint64 // payload
	RcvdBytes            uint64 // payload
	DuplicateRequest     uint64 // requests received before
	OutOfSeqRequest      uint64 // gaps in the request PSNs, each counted once
	RcvdRNRErr           uint64 // RNR NAKs received
	SendRNRErr           uint64 // RNR NAKs sent
	RcvdSeqErr           uint64 // sequence NAKs received
	SendSeqErr           uint64 // sequence NAKs sent
	AckDeferred          uint64 // acknowledgements saved by coalescing
	RetryExceededErr     uint64
	RetryRNRExceededErr  uint64
	CompleterRetryErr    uint64 // go-backs
	SendErr              uint64 // send requests that failed
	Retransmitted        uint64 // retransmitted packets
	Timeouts             uint64 // local ACK timeouts
	Probes               uint64 // probes sent before the timeout
	RDMASends            uint64 // messages sent, without retransmissions
	RDMARecvs            uint64 // messages received
	CNPSent, CNPReceived uint64
	ECNMarked            uint64 // packets that arrived with the congestion mark
	CreditStalls         uint64 // messages that waited for a credit
	Unsignaled           uint64 // requests that succeeded without a completion
}

// LinkCounters are the counters of the socket. JSON names are the fields' in
// snake case.
type LinkCounters struct {
	SendCalls   uint64 // system calls that sent something
	SentPackets uint64 // RoCE packets handed to the system
	SentBytes   uint64 // of those packets, BTH to ICRC

	// The receive counters lag while the link is readable, and are exact after
	// a ReadBatch has returned 0.
	ReceiveCalls      uint64 // system calls that received something
	ReceivedDatagrams uint64 // buffers received; GRO puts several packets into one
	ReceivedPackets   uint64
	ReceivedBytes     uint64

	// Datagrams dropped because the socket's receive buffer or the portable
	// link's ring was full.
	ReceiveOverflow uint64

	SendBlocked     uint64 // sends that had to wait for room in the send buffer
	SendTooBig      uint64 // packets above the path MTU (EMSGSIZE)
	SendNoBuffers   uint64 // packets the system had no memory for (ENOBUFS, ENOMEM), or no room in time
	SendDenied      uint64 // packets a firewall or a permission refused (EPERM, EACCES)
	SendUnreachable uint64 // packets without a route or an answering host
	SendFailed      uint64 // packets refused for any other reason
	ICMPErrors      uint64 // errors of earlier packets that a later call reported (ECONNREFUSED)
	GSOFallbacks    uint64 // times that segmentation offload was switched off because it failed
}

// FaultCounters count the effects of injected faults. JSON names are the
// fields' in snake case.
type FaultCounters struct {
	Lost, Dropped, Overflow, Duplicated, Corrupted, Delayed, Reordered, Marked uint64
}

// CounterInfo describes a counter.
type CounterInfo struct {
	Name        string // as in JSON
	Description string // a sentence
}

// counter is one row of a table of counters that are fields of T.
type counter[T any] struct {
	CounterInfo
	field func(*T) *uint64
}

// counterTable maps fields of T to names, in the order in which tools show
// them.
type counterTable[T any] []counter[T]

// all yields every counter with its value in v.
func (t counterTable[T]) all(v *T) iter.Seq2[CounterInfo, uint64] {
	return func(yield func(CounterInfo, uint64) bool) {
		for i := range t {
			if !yield(t[i].CounterInfo, *t[i].field(v)) {
				return
			}
		}
	}
}

func (t counterTable[T]) marshal(v *T) ([]byte, error) {
	b := []byte{'{'}
	for c, n := range t.all(v) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, c.Name)
		b = append(b, ':')
		b = strconv.AppendUint(b, n, 10)
	}
	return append(b, '}'), nil
}

// unmarshal ignores unknown names, so that tools can read the output of newer
// adapters.
func (t counterTable[T]) unmarshal(data []byte, v *T) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	var values map[string]uint64
	if err := json.Unmarshal(data, &values); err != nil {
		return fmt.Errorf("counters: %w", err)
	}
	for i := range t {
		*t[i].field(v) = values[t[i].Name]
	}
	return nil
}

// All yields the counters in the order of rxe, then our own.
func (c Counters) All() iter.Seq2[CounterInfo, uint64] { return deviceCounters.all(&c) }

// MarshalJSON writes an object with a member for each counter.
func (c Counters) MarshalJSON() ([]byte, error) { return deviceCounters.marshal(&c) }

// UnmarshalJSON reads the output of MarshalJSON.
func (c *Counters) UnmarshalJSON(data []byte) error { return deviceCounters.unmarshal(data, c) }

// All yields the counters in the order of rxe, then our own.
func (c QPCounters) All() iter.Seq2[CounterInfo, uint64] { return qpCounters.all(&c) }

// MarshalJSON writes an object with a member for each counter.
func (c QPCounters) MarshalJSON() ([]byte, error) { return qpCounters.marshal(&c) }

// UnmarshalJSON reads the output of MarshalJSON.
func (c *QPCounters) UnmarshalJSON(data []byte) error { return qpCounters.unmarshal(data, c) }

// All yields the counters: sending, receiving, then errors.
func (c LinkCounters) All() iter.Seq2[CounterInfo, uint64] { return linkCounters.all(&c) }

// MarshalJSON writes an object with a member for each counter.
func (c LinkCounters) MarshalJSON() ([]byte, error) { return linkCounters.marshal(&c) }

// UnmarshalJSON reads the output of MarshalJSON.
func (c *LinkCounters) UnmarshalJSON(data []byte) error { return linkCounters.unmarshal(data, c) }

// All yields the counters, the most severe first.
func (c FaultCounters) All() iter.Seq2[CounterInfo, uint64] { return faultCounters.all(&c) }

// MarshalJSON writes an object with a member for each counter.
func (c FaultCounters) MarshalJSON() ([]byte, error) { return faultCounters.marshal(&c) }

// UnmarshalJSON reads the output of MarshalJSON.
func (c *FaultCounters) UnmarshalJSON(data []byte) error { return faultCounters.unmarshal(data, c) }
