package link

import (
	"bytes"
	"net"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/softrnic/softrnic/wire"
)

// trafficClass sets traffic class and hop limit on the portable link, and reads
// the traffic class, as far as x/net can: for IPv6 by control messages, for IPv4
// by socket options when they change and not on receive. There is no way to set a
// flow label.
type trafficClass struct {
	conn         *net.UDPConn
	v6           bool
	socketHeader ipHeader // IPv4: of the socket

	controlMessages map[ipHeader][]byte // IPv6: control messages, made when first sent

	lastMessage []byte // IPv6: control message last received
	lastClass   uint8  // its traffic class, cached because x/net's parser allocates
}

// ipHeader has the fields of an IP header that a packet can set.
type ipHeader struct{ tos, hops uint8 }

func (t *trafficClass) init(tos uint8) {
	if t.v6 {
		t.controlMessages = make(map[ipHeader][]byte)
		ipv6.NewPacketConn(t.conn).SetControlMessage(ipv6.FlagTrafficClass, true)
		ipv6.NewConn(t.conn).SetHopLimit(HopLimit)
	} else {
		t.setSocketHeader(ipHeader{tos, HopLimit})
	}
}

// setSocketHeader changes the header of the socket, IPv4. To multicast groups the hop limit
// stays the system's.
func (t *trafficClass) setSocketHeader(h ipHeader) {
	if h.tos != t.socketHeader.tos {
		ipv4.NewConn(t.conn).SetTOS(int(h.tos))
	}
	if h.hops != t.socketHeader.hops {
		ipv4.NewConn(t.conn).SetTTL(int(h.hops))
	}
	t.socketHeader = h
}

// prepareSend makes the next packet carry the traffic class and hop limit of
// the path, and returns the control message for that, or nil.
func (t *trafficClass) prepareSend(to *wire.Path) []byte {
	h := ipHeader{to.TrafficClass, to.HopLimit}
	if !t.v6 {
		if h.hops == 0 {
			h.hops = HopLimit
		}
		t.setSocketHeader(h)
		return nil
	}
	if h.hops == HopLimit {
		h.hops = 0
	}
	if h == (ipHeader{}) { // the socket's; x/net takes it for no control message
		return nil
	}
	m := t.controlMessages[h]
	if m == nil {
		m = (&ipv6.ControlMessage{TrafficClass: int(h.tos), HopLimit: int(h.hops)}).Marshal()
		t.controlMessages[h] = m
	}
	return m
}

// parseReceived returns the traffic class in the control messages of a
// datagram, 0 if they have none.
func (t *trafficClass) parseReceived(oob []byte) uint8 {
	if !t.v6 || bytes.Equal(oob, t.lastMessage) {
		return t.lastClass
	}
	var m ipv6.ControlMessage
	if m.Parse(oob) != nil {
		return 0
	}
	t.lastMessage, t.lastClass = append(t.lastMessage[:0], oob...), uint8(m.TrafficClass)
	return t.lastClass
}
