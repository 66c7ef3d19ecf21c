package verbs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxUint24 is the largest queue pair number and packet sequence number.
const maxUint24 = 1<<24 - 1

// An Endpoint is the address of one end of a connection, with the parameters that
// the other end needs. Programs exchange endpoints by any means: a TCP connection,
// a file, a command line.
//
// Its text form is one word without shell metacharacters; zero fields are omitted:
//
//	gid=10.0.0.1,port=4791,qpn=0x11,psn=0x3039,mtu=4096,rd=16,buffer=212992
//
// Its JSON form is an object with the names of the tags.
type Endpoint struct {
	GID        GID    `json:"gid"`
	UDPPort    uint16 `json:"udp_port,omitempty"`    // 0 means 4791
	QPN        uint32 `json:"qpn"`                   // 24 bits
	PSN        uint32 `json:"psn"`                   // first PSN that this end sends, 24 bits
	RecvBuffer uint32 `json:"recv_buffer,omitempty"` // bytes of the socket's receive buffer; 0 for a peer other than softrnic, see AHAttr.PeerBuffer
	MTU        MTU    `json:"mtu,omitempty"`         // active MTU of its port, 0 if unknown
	RdAtomic   uint8  `json:"rd_atomic,omitempty"`   // reads and atomics served at a time (RC), 0 if unknown

	// Selective offers selective retransmission (RC). Connect selects it if both
	// ends offer it, and needs their RecvBuffer. In the text form an odd buffer
	// has this meaning, because earlier versions refuse names that they do not
	// know; sizes of buffers are even.
	Selective bool `json:"selective,omitempty"`
}

// LocalEndpoint returns the endpoint of qp, at entry 0 of the GID table of port 1 of
// dev. psn is the first PSN that qp sends; a random one prevents packets of an earlier
// connection from being accepted. RdAtomic is the default of Connect; to serve more or
// fewer reads and atomics, change it before the endpoint is passed to the peer.
func LocalEndpoint(dev Device, qp QP, psn uint32) (Endpoint, error) {
	switch {
	case qp == nil:
		return Endpoint{}, &OpError{Op: "describe local endpoint", Object: "queue pair", Err: errNilQP}
	case dev == nil:
		return Endpoint{}, localError(qp, fmt.Errorf("%w: nil device", ErrInvalid))
	}
	port, err := dev.QueryPort(1)
	if err != nil {
		return Endpoint{}, localError(qp, err)
	}
	gid, err := dev.QueryGID(1, 0)
	if err != nil {
		return Endpoint{}, localError(qp, err)
	}
	e := Endpoint{
		GID:        gid.GID,
		UDPPort:    port.UDPPort,
		QPN:        qp.Num(),
		PSN:        psn,
		RecvBuffer: port.RecvBuffer,
		MTU:        port.ActiveMTU,
	}
	if qp.Type() == RC {
		e.RdAtomic = uint8(min(defaultRdAtomic, dev.QueryDevice().MaxQPRdAtom))
		e.Selective = port.Selective && port.RecvBuffer > 0
	}
	if err := e.validate(); err != nil {
		return Endpoint{}, localError(qp, err)
	}
	return e, nil
}

func localError(qp QP, err error) error {
	return &OpError{Op: "describe local endpoint", Object: objectQP(qp.Num()), Err: err}
}

// validate returns ErrInvalid if e cannot be one end of a connection.
func (e Endpoint) validate() error {
	switch {
	case e.GID.Addr().IsUnspecified():
		return e.invalidError("no address; fill in the peer's, or bind the peer's device to the address by which others reach it")
	case e.GID.Addr().IsMulticast():
		return e.invalidError("a multicast group cannot be connected to")
	case e.QPN == 0 || e.QPN > maxUint24:
		return e.invalidError("the queue pair number must be from 1 to 0xffffff")
	case e.PSN > maxUint24:
		return e.invalidError("the packet sequence number has 24 bits, at most 0xffffff")
	case e.MTU > MTU4096:
		return e.invalidError("the MTU must be 256, 512, 1024, 2048 or 4096, or 0 if unknown")
	}
	return nil
}

func (e Endpoint) invalidError(detail string) error {
	return &OpError{Op: "check endpoint", Object: e.String(), Err: ErrInvalid, Detail: detail}
}

// String returns the text form, also of an invalid endpoint.
func (e Endpoint) String() string {
	b := fmt.Appendf(nil, "gid=%v", e.GID.Addr())
	if e.UDPPort != 0 {
		b = fmt.Appendf(b, ",port=%d", e.UDPPort)
	}
	b = fmt.Appendf(b, ",qpn=%#x,psn=%#x", e.QPN, e.PSN)
	if e.MTU != 0 {
		b = fmt.Appendf(b, ",mtu=%v", e.MTU)
	}
	if e.RdAtomic != 0 {
		b = fmt.Appendf(b, ",rd=%d", e.RdAtomic)
	}
	if e.RecvBuffer != 0 {
		buffer := e.RecvBuffer
		if e.Selective {
			buffer |= 1
		}
		b = fmt.Appendf(b, ",buffer=%d", buffer)
	}
	return string(b)
}

// MarshalText returns the text form, or an error if e is invalid.
func (e Endpoint) MarshalText() ([]byte, error) {
	if err := e.validate(); err != nil {
		return nil, err
	}
	return []byte(e.String()), nil
}

// UnmarshalText parses the text form, in any order of the fields. Numbers are
// decimal, or hexadecimal after 0x. On an error e is not changed.
func (e *Endpoint) UnmarshalText(text []byte) error {
	var parsed Endpoint
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(string(text), ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return parseError(text, "%s is not of the form name=value", quoteTruncated(part))
		}
		if seen[name] {
			return parseError(text, "%s is there twice", quoteTruncated(name))
		}
		seen[name] = true
		if err := parsed.setField(name, value); err != nil {
			return parseError(text, "%s: %v", quoteTruncated(part), err)
		}
	}
	for _, name := range []string{"gid", "qpn", "psn"} {
		if !seen[name] {
			return parseError(text, "%s is missing", name)
		}
	}
	if err := parsed.validate(); err != nil {
		return err
	}
	*e = parsed
	return nil
}

// setField parses one field of the text form.
func (e *Endpoint) setField(name, value string) error {
	var number uint64
	var err error
	switch name {
	case "gid":
		e.GID, err = ParseGID(value)
	case "mtu":
		err = e.MTU.UnmarshalText([]byte(value))
	case "port":
		number, err = parseNumber(value, 16)
		e.UDPPort = uint16(number)
	case "qpn":
		number, err = parseNumber(value, 32)
		e.QPN = uint32(number)
	case "psn":
		number, err = parseNumber(value, 32)
		e.PSN = uint32(number)
	case "rd":
		number, err = parseNumber(value, 8)
		e.RdAtomic = uint8(number)
	case "buffer":
		number, err = parseNumber(value, 32)
		e.RecvBuffer, e.Selective = uint32(number)&^1, number&1 != 0
	default:
		err = errors.New("unknown name; want gid, port, qpn, psn, mtu, rd or buffer")
	}
	return err
}

func parseNumber(s string, bits int) (uint64, error) {
	base, digits := 10, s
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		base, digits = 16, hex
	}
	n, err := strconv.ParseUint(digits, base, bits)
	if err != nil {
		return 0, fmt.Errorf("not a number of %d bits", bits)
	}
	return n, nil
}

func parseError(text []byte, format string, args ...any) error {
	return &OpError{Op: "parse endpoint", Object: quoteTruncated(string(text)), Err: ErrInvalid,
		Detail: fmt.Sprintf(format, args...)}
}

// An endpointObject is an Endpoint that encoding/json encodes as a struct
// instead of text.
type endpointObject Endpoint

// MarshalJSON encodes e as an object, not in the text form.
func (e Endpoint) MarshalJSON() ([]byte, error) {
	if err := e.validate(); err != nil {
		return nil, err
	}
	return json.Marshal(endpointObject(e))
}

// UnmarshalJSON parses the output of MarshalJSON. On an error e is not changed.
func (e *Endpoint) UnmarshalJSON(data []byte) error {
	var parsed endpointObject
	if err := json.Unmarshal(data, &parsed); err != nil {
		return err
	}
	if err := Endpoint(parsed).validate(); err != nil {
		return err
	}
	*e = Endpoint(parsed)
	return nil
}
