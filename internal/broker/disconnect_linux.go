package broker

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/mad"
)

// disconnectDelays are the times between the DREQs for a connection. Nobody waits for the DREP,
// which comes to an ID that no process has, so that they are sent in any case.
var disconnectDelays = [...]time.Duration{50 * time.Millisecond, 250 * time.Millisecond, time.Second}

// disconnectAll ends the connections of a slot whose process has ended: it sends their peers a DREQ
// from the address, as the kernel does for a process with hardware.
func (g *group) disconnectAll(slot int, list []conn) {
	if len(list) == 0 {
		return
	}
	g.sendDREQs(slot, list)
	g.running.Go(func() {
		for _, d := range disconnectDelays {
			if !g.pause(d) {
				return
			}
			g.sendDREQs(slot, list)
		}
	})
}

// sendDREQs sends a DREQ for each connection once. One that cannot be sent is lost.
func (g *group) sendDREQs(slot int, list []conn) {
	for _, c := range list {
		_ = unix.Sendto(g.sockets[slot], appendDREQ(nil, g.addr, c), unix.MSG_DONTWAIT, sockaddrOf(c.peer))
	}
}

// appendDREQ appends the packet that disconnects a connection of the adapter at an address. The
// system writes the IPv4 identification 0: the socket is not connected, and does not fragment.
func appendDREQ(b []byte, from netip.AddrPort, c conn) []byte {
	start := len(b)
	b = append(b, make([]byte, wire.BTHLen+wire.DETHLen)...)
	header := wire.BTH{Opcode: wire.UDSendOnly, PKey: wire.DefaultPKey, DestQPN: wire.QPNGSI}
	header.Put(b[start:])
	wire.DETH{QKey: wire.QKeyGSI, SrcQPN: wire.QPNGSI}.Put(b[start+wire.BTHLen:])
	h := mad.Header{TID: uint64(c.id)<<32 | uint64(c.remoteID), Attr: mad.AttrDREQ}
	if from.Port() != link.RoCEPort {
		h.UDPPort = from.Port()
	}
	var datagram [mad.Size]byte
	mad.Put(&datagram, h, &mad.DREQ{LocalID: c.id, RemoteID: c.remoteID, RemoteQPN: c.remoteQPN})
	b = append(append(b, datagram[:]...), make([]byte, wire.ICRCLen)...)
	sealer := wire.NewICRC(from, c.peer)
	sealer.Put(b[start:], 0)
	return b
}

// sockaddrOf returns an address for the system. The sockets of a link-local address are bound to its
// interface, so that the zone is not needed.
func sockaddrOf(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
