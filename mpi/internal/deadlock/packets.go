package deadlock

// PacketContext is the context id of the packets of the detectors: that of the world.
const PacketContext = 0

// Packets of the detectors of the ranks (package detector). They are active messages with the
// context id PacketContext, and the type of the packet is their tag.
//
//	packet        ID     Length     payload
//	Probe         -      -          none: a liveness probe; the acknowledgement by the adapter is the reply
//	RankLost      rank   reporter   reason
//	Alarm         -      reason     none: a wait of this rank exceeds the alarm; to rank 0
//	AlarmAck      -      -          none: the reply
//	StateQuery    round  -          none: request for the state of the rank
//	State         round  -          part of a State; Synchronous marks the last part
//	Mismatch      comm   -          a callMismatch
//	CallEnded     comm   -          a callProbe: the call is complete at this rank
//	Confirm       -      -          none: the reply to Mismatch
//	Flush         -      -          none: request for a Flushed once all earlier packets are handled
//	Flushed       -      -          none: the reply to Flush and Depart
//	Depart        -      -          reason of the sender for ending early; Synchronous marks an ErrMismatch. Also a Flush
//
// A Probe of a rank that waits in a collective call has the communicator in ID and a callProbe
// as payload.
const (
	PacketProbe int32 = iota
	PacketRankLost
	PacketAlarm
	PacketAlarmAck
	PacketStateQuery
	PacketState
	PacketMismatch
	PacketCallEnded
	PacketConfirm
	PacketFlush
	PacketFlushed
	PacketDepart
)
