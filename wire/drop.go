package wire

import "strconv"

// A Drop is the reason why the adapter dropped a packet. Drops are counted by
// reason.
type Drop uint8

// Reasons to drop a packet, roughly in the order of the checks.
const (
	DropNone Drop = iota // the packet was not dropped
	DropTruncated
	DropTooLong
	DropBadOpcode
	DropBadVersion
	DropBadPad
	DropBadLength
	DropBadICRC
	DropMalformed
	DropUnknownQPN
	DropNotAttached
	DropQPState
	DropWrongTransport
	DropWrongSource
	DropBadPKey
	DropBadQKey
	DropOutOfSequence
	DropBadSequence
	DropDuplicate
	DropUnknownReplay
	DropGhostResponse
	DropBadSyndrome
	DropNoReceive
	DropTooBigForBuffer
	DropAccessDenied
	NumDrops // number of reasons, DropNone included
)

var drops = [NumDrops]struct{ name, why string }{
	DropNone:            {"none", "The packet was not dropped."},
	DropTruncated:       {"truncated", "The datagram ends before the headers and the ICRC that its opcode requires."},
	DropTooLong:         {"too_long", "The datagram is longer than any packet this adapter can receive."},
	DropBadOpcode:       {"bad_opcode", "The opcode is reserved or belongs to a transport that is not supported."},
	DropBadVersion:      {"bad_version", "The transport version in the BTH is not 0."},
	DropBadPad:          {"bad_pad", "The BTH announces more pad bytes than follow the headers."},
	DropBadLength:       {"bad_length", "The opcode does not permit this payload length."},
	DropBadICRC:         {"bad_icrc", "The invariant CRC does not match: the packet is corrupt or malformed."},
	DropMalformed:       {"malformed", "The headers contradict each other or have undefined values."},
	DropUnknownQPN:      {"unknown_qpn", "No queue pair has the destination QPN."},
	DropNotAttached:     {"not_attached", "No queue pair is attached to the multicast group."},
	DropQPState:         {"qp_state", "The queue pair is not in a state that receives such packets."},
	DropWrongTransport:  {"wrong_transport", "The opcode belongs to another transport class than the queue pair."},
	DropWrongSource:     {"wrong_source", "The source address is not that of the connected peer."},
	DropBadPKey:         {"bad_pkey", "The P_Key does not match the queue pair's partition."},
	DropBadQKey:         {"bad_qkey", "The Q_Key differs from the queue pair's."},
	DropOutOfSequence:   {"out_of_sequence", "The PSN is ahead of the expected one: a packet before it is missing."},
	DropBadSequence:     {"bad_sequence", "The opcode does not continue the message in progress, as a MIDDLE without FIRST."},
	DropDuplicate:       {"duplicate", "The packet was received and processed before."},
	DropUnknownReplay:   {"unknown_replay", "A retransmitted READ or atomic is too old: its responder resource was reused."},
	DropGhostResponse:   {"ghost_response", "The response belongs to no outstanding request."},
	DropBadSyndrome:     {"bad_syndrome", "The AETH syndrome is reserved."},
	DropNoReceive:       {"no_receive", "An unreliable queue pair had no receive posted for the message."},
	DropTooBigForBuffer: {"too_big_for_buffer", "The message does not fit into the posted receive buffer."},
	DropAccessDenied:    {"access_denied", "The key, address range or access flags do not permit an unreliable WRITE."},
}

// String returns the name of the reason in snake case, as in counters.
func (d Drop) String() string {
	if d < NumDrops {
		return drops[d].name
	}
	return "drop_" + strconv.Itoa(int(d))
}

// Description returns a sentence that explains the reason.
func (d Drop) Description() string {
	if d < NumDrops {
		return drops[d].why
	}
	return "The reason is unknown."
}
