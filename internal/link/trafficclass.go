package link

import (
	"bytes"
	"net"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// trafficClass sets and reads the traffic class on the portable link as far
// as x/net can: for IPv6 by control messages, for IPv4 by a socket option when
// it changes and not on receive.
type trafficClass struct {
	conn *net.UDPConn
	v6   bool
	own  uint8 // IPv4: class of the socket

	messages [256][]byte // IPv6: control message per class, made when first sent

	last      []byte // IPv6: control message last received
	lastClass uint8  // and what it said; x/net's parser allocates
}

func (t *trafficClass) init(tos uint8) {
	if t.v6 {
		ipv6.NewPacketConn(t.conn).SetControlMessage(ipv6.FlagTrafficClass, true)
	} else {
		t.set(tos)
	}
}

// set changes the class of the socket, IPv4.
func (t *trafficClass) set(tos uint8) {
	if tos != t.own {
		ipv4.NewConn(t.conn).SetTOS(int(tos))
		t.own = tos
	}
}

// send makes the next packet carry tos and returns the control message it
// needs for that, nil for none.
func (t *trafficClass) send(tos uint8) []byte {
	if !t.v6 {
		t.set(tos)
		return nil
	}
	if tos == 0 { // the socket's; x/net takes it for no control message
		return nil
	}
	if t.messages[tos] == nil {
		t.messages[tos] = (&ipv6.ControlMessage{TrafficClass: int(tos)}).Marshal()
	}
	return t.messages[tos]
}

// received reads the traffic class from the control messages of a datagram, 0
// if they do not tell.
func (t *trafficClass) received(oob []byte) uint8 {
	if !t.v6 || bytes.Equal(oob, t.last) {
		return t.lastClass
	}
	var m ipv6.ControlMessage
	if m.Parse(oob) != nil {
		return 0
	}
	t.last, t.lastClass = append(t.last[:0], oob...), uint8(m.TrafficClass)
	return t.lastClass
}
