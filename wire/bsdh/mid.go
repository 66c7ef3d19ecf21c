package bsdh

import "strconv"

// MID tells messages apart.
type MID uint8

// Messages of SDP. "Source" is the side that sends a stream of data, "sink" the
// one that receives it; each side is both, once for each direction.
const (
	MIDHello           MID = 0x00 // asks for a connection, in the private data of a REQ
	MIDHelloAck        MID = 0x01 // accepts it, in the private data of a REP
	MIDDisConn         MID = 0x02 // the sender has no more data
	MIDAbortConn       MID = 0x03 // the connection is reset
	MIDSendSm          MID = 0x04 // sink: send the advertised data as messages
	MIDRdmaWrCompl     MID = 0x05 // source: RDMA WRITEs into the oldest SinkAvail are done
	MIDRdmaRdCompl     MID = 0x06 // sink: RDMA READs of the SrcAvail are done
	MIDModeChange      MID = 0x07 // one direction goes on in another mode
	MIDSrcAvailCancel  MID = 0x08 // source: takes its advertisements back
	MIDSinkAvailCancel MID = 0x09 // sink: takes its advertisements back
	MIDSinkCancelAck   MID = 0x0A // source: heeds that
	MIDChRcvBuf        MID = 0x0B // asks for receive buffers of another size
	MIDChRcvBufAck     MID = 0x0C // says which size they have now
	MIDSuspComm        MID = 0x0D // asks for silence: the connection moves
	MIDSuspCommAck     MID = 0x0E // heeds that
	MIDSinkAvail       MID = 0xFD // sink: memory to write to
	MIDSrcAvail        MID = 0xFE // source: memory to read from
	MIDData            MID = 0xFF // bytes of the stream; without any, news of Bufs and Ack
)

// Messages of ours, which only peers that agreed on an Extension send: SDP has
// reserved their numbers.
const (
	MIDRingUpdate   MID = 0x70 // sink: how much of its ring is free again
	MIDRingChange   MID = 0x71 // sink: another ring takes over
	MIDRingSwitched MID = 0x72 // source: all that follows is in the ring of the last RingChange
)

// HeaderBytes is the length of the base header.
const HeaderBytes = 16

// Lengths of extended headers.
const (
	helloBytes     = HelloBytes - HeaderBytes
	helloAckBytes  = HelloAckBytes - HeaderBytes
	complBytes     = 4
	modeBytes      = 4
	rcvBufBytes    = 4
	suspBytes      = 8
	sinkAvailBytes = 20
	srcAvailBytes  = 16
	updateBytes    = 8
	changeBytes    = 16
)

// form is what a kind of message is like.
type form struct {
	name     string
	extended int
	payload  bool
}

var forms = [256]form{
	MIDHello:           {"Hello", helloBytes, false},
	MIDHelloAck:        {"HelloAck", helloAckBytes, false},
	MIDDisConn:         {"DisConn", 0, false},
	MIDAbortConn:       {"AbortConn", 0, false},
	MIDSendSm:          {"SendSm", 0, false},
	MIDRdmaWrCompl:     {"RdmaWrCompl", complBytes, false},
	MIDRdmaRdCompl:     {"RdmaRdCompl", complBytes, false},
	MIDModeChange:      {"ModeChange", modeBytes, false},
	MIDSrcAvailCancel:  {"SrcAvailCancel", 0, false},
	MIDSinkAvailCancel: {"SinkAvailCancel", 0, false},
	MIDSinkCancelAck:   {"SinkCancelAck", 0, false},
	MIDChRcvBuf:        {"ChRcvBuf", rcvBufBytes, false},
	MIDChRcvBufAck:     {"ChRcvBufAck", rcvBufBytes, false},
	MIDSuspComm:        {"SuspComm", suspBytes, false},
	MIDSuspCommAck:     {"SuspCommAck", 0, false},
	MIDRingUpdate:      {"RingUpdate", updateBytes, false},
	MIDRingChange:      {"RingChange", changeBytes, false},
	MIDRingSwitched:    {"RingSwitched", 0, false},
	MIDSinkAvail:       {"SinkAvail", sinkAvailBytes, true},
	MIDSrcAvail:        {"SrcAvail", srcAvailBytes, true},
	MIDData:            {"Data", 0, true},
}

// String is the message's name, for example "SrcAvail".
func (m MID) String() string {
	if name := forms[m].name; name != "" {
		return name
	}
	return "MID 0x" + strconv.FormatUint(uint64(m), 16)
}

// Extended is how many bytes of extended header follow the base header; 0 for
// reserved numbers, too.
func (m MID) Extended() int { return forms[m].extended }

// MayCarry reports whether the message may have a payload.
func (m MID) MayCarry() bool { return forms[m].payload }

// Private reports whether the message is one of ours, valid only after both
// sides agreed on an Extension.
func (m MID) Private() bool { return m >= MIDRingUpdate && m <= MIDRingSwitched }

// Known reports whether there is such a message, in SDP or of ours. The other
// numbers are reserved.
func (m MID) Known() bool { return forms[m].name != "" }
