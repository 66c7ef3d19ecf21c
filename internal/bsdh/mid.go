package bsdh

import "strconv"

// A MID is the message identifier of an SDP message.
type MID uint8

// Messages of SDP. "Source" is the side that sends a stream of data, "sink" the
// one that receives it; each side is both, once for each direction.
const (
	MIDHello           MID = 0x00 // requests a connection, in the private data of a REQ
	MIDHelloAck        MID = 0x01 // accepts a connection, in the private data of a REP
	MIDDisConn         MID = 0x02 // the sender has no more data
	MIDAbortConn       MID = 0x03 // the connection is reset
	MIDSendSm          MID = 0x04 // sink: send the advertised data as messages
	MIDRdmaWrCompl     MID = 0x05 // source: RDMA WRITEs into the oldest SinkAvail are done
	MIDRdmaRdCompl     MID = 0x06 // sink: RDMA READs of the SrcAvail are done
	MIDModeChange      MID = 0x07 // changes the mode of one direction
	MIDSrcAvailCancel  MID = 0x08 // source: cancels its advertisements
	MIDSinkAvailCancel MID = 0x09 // sink: cancels its advertisements
	MIDSinkCancelAck   MID = 0x0A // source: acknowledges SinkAvailCancel
	MIDChRcvBuf        MID = 0x0B // requests receive buffers of another size
	MIDChRcvBufAck     MID = 0x0C // reports their new size
	MIDSuspComm        MID = 0x0D // suspends communication: the connection moves
	MIDSuspCommAck     MID = 0x0E // acknowledges SuspComm
	MIDSinkAvail       MID = 0xFD // sink: memory to write to
	MIDSrcAvail        MID = 0xFE // source: memory to read from
	MIDData            MID = 0xFF // stream data; without payload an update of Bufs and Ack
)

// Messages of softrnic, sent only after both sides agreed on an Extension. SDP
// reserves their numbers.
const (
	MIDRingUpdate   MID = 0x70 // sink: freed bytes of its ring
	MIDRingChange   MID = 0x71 // sink: replaces its ring
	MIDRingSwitched MID = 0x72 // source: later data is in the ring of the last RingChange
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

// A form describes the messages of one MID.
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

// String returns the name of the message, for example "SrcAvail".
func (m MID) String() string {
	if name := forms[m].name; name != "" {
		return name
	}
	return "MID 0x" + strconv.FormatUint(uint64(m), 16)
}

// Extended returns the length of the extended header in bytes, 0 for reserved
// numbers.
func (m MID) Extended() int { return forms[m].extended }

// MayCarry reports whether the message may have a payload.
func (m MID) MayCarry() bool { return forms[m].payload }

// Private reports whether the message is a softrnic extension, valid only after both
// sides agreed on an Extension.
func (m MID) Private() bool { return m >= MIDRingUpdate && m <= MIDRingSwitched }

// Known reports whether the message is defined by SDP or softrnic. Other numbers are
// reserved.
func (m MID) Known() bool { return forms[m].name != "" }
