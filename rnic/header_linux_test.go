package rnic

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/verbs"
)

// header is the fields of an IP header except addresses and lengths.
type header struct {
	class, hops uint8
	label       uint32
}

// wiretap is a UDP socket in place of a peer's adapter that receives headers.
type wiretap struct {
	t    *testing.T
	conn *net.UDPConn
	at   netip.AddrPort
	v6   bool
}

const ipv6FlowInfo = 11 // linux/in6.h

func newWiretap(t *testing.T, ip string) *wiretap {
	a := netip.MustParseAddr(ip)
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	w := &wiretap{t: t, conn: conn, v6: !a.Is4()}
	w.at = netip.AddrPortFrom(a, conn.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	raw, err := conn.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		options := [][2]int{{unix.IPPROTO_IP, unix.IP_RECVTTL}, {unix.IPPROTO_IP, unix.IP_RECVTOS}}
		if w.v6 {
			options = [][2]int{{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT}, {unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS}, {unix.IPPROTO_IPV6, ipv6FlowInfo}}
		}
		for _, o := range options {
			require.NoError(t, unix.SetsockoptInt(int(fd), o[0], o[1], 1))
		}
	}))
	return w
}

// next returns the header of the next packet.
func (w *wiretap) next() (h header) {
	w.t.Helper()
	require.NoError(w.t, w.conn.SetReadDeadline(time.Now().Add(patience)))
	buf, oob := make([]byte, 1<<16), make([]byte, 256)
	_, n, _, _, err := w.conn.ReadMsgUDPAddrPort(buf, oob)
	require.NoError(w.t, err)
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	require.NoError(w.t, err)
	for _, m := range messages {
		switch m.Header.Type {
		case unix.IP_TTL, unix.IPV6_HOPLIMIT:
			h.hops = uint8(binary.NativeEndian.Uint32(m.Data))
		case unix.IP_TOS:
			h.class = m.Data[0]
		case unix.IPV6_TCLASS:
			h.class = uint8(binary.NativeEndian.Uint32(m.Data))
		case ipv6FlowInfo:
			h.label = binary.BigEndian.Uint32(m.Data) & 0xfffff
		}
	}
	return h
}

// TestAddressVectorOnTheWire checks that packets have the traffic class, hop limit and flow label
// of the address vector, single ones and batches, for each type of queue pair, and that Query and
// Attr return them.
func TestAddressVectorOnTheWire(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		for _, c := range []struct {
			set, want header
		}{
			{header{}, header{hops: 64}},
			{header{class: 0x68}, header{class: 0x68, hops: 64}},
			{header{hops: 33}, header{hops: 33}},
			{header{hops: 64}, header{hops: 64}},
			{header{hops: 255, class: 0xb8}, header{hops: 255, class: 0xb8}},
			{header{label: 0xabcde}, header{hops: 64, label: 0xabcde}},
			{header{label: 0xffffffff}, header{hops: 64, label: 0xfffff}},
			{header{0x28, 7, 0x300001}, header{0x28, 7, 1}},
		} {
			for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
				for _, bytes := range []int{8, 3000} {
					t.Run(fmt.Sprint(ip, " ", c.set, " ", typ, " ", bytes), func(t *testing.T) { testHeader(t, ip, typ, bytes, c.set, c.want) })
				}
			}
		}
	}
}

func testHeader(t *testing.T, ip string, typ verbs.QPType, bytes int, set, want header) {
	w := newWiretap(t, ip)
	e := newEndOf(t, Options{Addr: netip.AddrPortFrom(netip.MustParseAddr(ip), 0), AnyPort: true}, typ)
	if e.dev.caps.Name == "udp-portable" && w.v6 && want.label != 0 {
		t.Skip("the portable link cannot set a flow label")
	}
	av := verbs.AHAttr{DGID: verbs.GIDFromAddr(w.at.Addr()), UDPPort: w.at.Port(), TrafficClass: set.class, HopLimit: set.hops, FlowLabel: set.label, SL: 255}
	wr := verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{e.mr.SGE(0, bytes)}, RemoteQPN: 5}
	var told verbs.AHAttr
	if typ == verbs.UD {
		require.NoError(t, verbs.ActivateUD(e.qp, qkey, 1))
		ah, err := e.pd.CreateAH(av)
		require.NoError(t, err)
		wr.AH, told = ah, ah.Attr()
	} else {
		local, err := verbs.LocalEndpoint(e.dev, e.qp, 1)
		require.NoError(t, err)
		require.NoError(t, verbs.Connect(e.qp, local, verbs.Endpoint{GID: av.DGID, UDPPort: av.UDPPort, QPN: 5},
			verbs.ConnectOptions{MTU: verbs.MTU1024, TrafficClass: set.class, HopLimit: set.hops, FlowLabel: set.label, SL: 255}))
		attr, _ := e.qp.Query()
		told = attr.AV
	}
	require.Equal(t, []any{want.class, want.hops, want.label, uint8(255)}, []any{told.TrafficClass, told.HopLimit, told.FlowLabel, told.SL})
	_, err := e.qp.PostSend([]verbs.SendWR{wr})
	require.NoError(t, err)
	packets := 1
	if typ != verbs.UD {
		packets = (bytes + 1023) / 1024
	}
	for range packets {
		got := w.next()
		switch {
		case !w.v6:
			want.label = 0
		case want.label == 0:
			got.label = 0 // chosen by the system
		}
		require.Equal(t, want, got)
	}
}
