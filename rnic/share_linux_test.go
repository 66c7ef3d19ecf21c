package rnic

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/broker"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

func init() { setUser = syscall.Setuid }

// needSharing skips a test if devices cannot share an address.
func needSharing(t *testing.T) {
	if strings.Contains(os.Getenv(EnvLink), "portable") {
		t.Skip("shared addresses need the fast path of Linux")
	}
}

// requireFree checks that nobody holds an address.
func requireFree(t *testing.T, addr netip.AddrPort) {
	c, err := link.OpenUDP(link.Options{Addr: addr})
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// TestSharedAddress runs traffic between three processes at one address, and with a device at
// another one, which notices nothing.
func TestSharedAddress(t *testing.T) {
	needSharing(t)
	for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		t.Run(typ.String(), func(t *testing.T) { checkSharing(t, ownaddr.Device(60), Options{}, typ) })
	}
	t.Run("IPv6", func(t *testing.T) {
		needIPv6(t)
		c, err := link.OpenUDP(link.Options{Addr: netip.MustParseAddrPort("[::1]:0")})
		require.NoError(t, err)
		require.NoError(t, c.Close())
		checkSharing(t, c.LocalAddr(), Options{Addr: netip.MustParseAddrPort("[::1]:0"), AnyPort: true}, verbs.RC)
	})
}

// checkSharing runs traffic between processes at addr, and with a device with the given options.
func checkSharing(t *testing.T, addr netip.AddrPort, alone Options, typ verbs.QPType) {
	e := newEndOf(t, Options{Addr: addr, Share: true}, typ)
	require.Equal(t, addr, e.dev.Addr())
	a := newChild(t, childOptions{Addr: addr, Share: true}, typ)
	b := newChild(t, childOptions{Addr: addr, Share: true}, typ)
	slots := map[int]bool{}
	for _, qpn := range []uint32{e.qp.Num(), a.Endpoint.QPN, b.Endpoint.QPN} {
		slots[broker.QPNSlot(qpn)] = true
	}
	require.Len(t, slots, 3)
	traffic(t, e, a, typ)
	traffic(t, newEndOf(t, alone, typ), b, typ)
	require.NoError(t, e.dev.Close())
	a.Kill()
	b.Kill()
	requireFree(t, addr)
}

// TestSharedAddressMulticast checks that datagrams to a group reach every device that has joined
// it, at one address.
func TestSharedAddressMulticast(t *testing.T) {
	needSharing(t)
	checkMulticast(t, Options{Addr: ownaddr.Device(67), Share: true}, "239.4.7.93")
}

// TestSharedAddressFull opens as many devices at one address as there are slots.
func TestSharedAddressFull(t *testing.T) {
	needSharing(t)
	o := Options{Addr: ownaddr.Device(62), Share: true, NoService: true, RecvBuffer: link.SystemDefault, SendBuffer: link.SystemDefault}
	var list []*Device
	for range broker.Slots {
		d, err := Open(o)
		require.NoError(t, err)
		list = append(list, d)
	}
	_, err := Open(o)
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.ErrorIs(t, err, broker.ErrFull)
	require.ErrorContains(t, err, "all slots are in use: 64 devices share the address")
	require.NoError(t, list[20].Close())
	again, err := Open(o)
	require.NoError(t, err)
	require.Equal(t, list[20].member.Slot(), again.member.Slot())
	for _, d := range append(list, again) {
		require.NoError(t, d.Close())
	}
	requireFree(t, o.Addr)
}

// TestSharedAddressRefused checks the errors of options that exclude sharing, and of an address
// that a device has alone.
func TestSharedAddressRefused(t *testing.T) {
	needSharing(t)
	addr := ownaddr.Device(63)
	for text, o := range map[string]Options{
		"Options.Share: no address to share; set Addr, Addrs or SOFTRNIC_ADDR":               {},
		"Options.Share: a slot of a shared address is one socket, but Options.Shards is 2":   {Addr: addr, Shards: 2},
		"Options.Share: only the fast path of Linux shares an address; clear Portable":       {Addr: addr, Portable: true},
		"Options.Share: the processes of a shared address must know its port; clear AnyPort": {Addr: addr, AnyPort: true},
		"203.0.113.7:4791: no interface of this machine has that address":                    {Addr: netip.MustParseAddrPort("203.0.113.7:4791")},
	} {
		o.Share = true
		_, err := Open(o)
		require.ErrorContains(t, err, text)
	}
	t.Setenv(envShare, "yes")
	_, err := Open(Options{})
	require.ErrorContains(t, err, `SOFTRNIC_SHARE: "yes": want 0 or 1`)
	t.Setenv(envShare, "1")
	alone := newEnd(t, Options{Addr: netip.AddrPortFrom(addr.Addr(), 4792)}) // by the environment shared, too
	require.NotNil(t, alone.dev.member)
	anyPort, err := Open(Options{Addr: alone.dev.Addr(), AnyPort: true})
	require.NoError(t, err)
	require.Equal(t, alone.dev.Addr(), anyPort.Addr())
	require.NoError(t, anyPort.Close())
	t.Setenv(envShare, "0")
	_, err = Open(Options{Addr: alone.dev.Addr()})
	require.ErrorIs(t, err, syscall.EADDRINUSE)

	newEnd(t, Options{Addr: addr})
	_, err = Open(Options{Addr: addr, Share: true})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
}

// TestSharedAddressForeign checks that processes of another user get an error that names the user.
func TestSharedAddressForeign(t *testing.T) {
	needSharing(t)
	if os.Getuid() != 0 {
		t.Skip("only root can change the user")
	}
	const nobody = 65534
	addr := ownaddr.Device(64)
	e := newEnd(t, Options{Addr: addr, Share: true})
	c := startChild(t)
	c.Do(order{Do: "setuid", N: nobody})
	a := c.Do(order{Do: "refusal", Options: childOptions{Addr: addr, Share: true}})
	require.True(t, a.Denied)
	require.Contains(t, a.Refusal, "the address belongs to another user: it is of user 0, this process is of user 65534")
	require.NoError(t, e.dev.Close())
	c.answer = c.Do(order{Do: "open", Options: childOptions{Addr: addr, Share: true}, Type: verbs.RC})
	traffic(t, newEnd(t, Options{}), c, verbs.RC)
	_, err := Open(Options{Addr: addr, Share: true})
	require.ErrorIs(t, err, os.ErrPermission)
}

// TestSharedAddressForeignBroker lets another user hold the broker's name, and that of a slot, of an
// address that is shared all the same.
func TestSharedAddressForeignBroker(t *testing.T) {
	needSharing(t)
	if os.Getuid() != 0 {
		t.Skip("only root can change the user")
	}
	addr := ownaddr.Device(68)
	for _, name := range []string{"broker", "1"} {
		c := startChild(t)
		c.Do(order{Do: "setuid", N: 65534})
		c.Do(order{Do: "hold", Name: fmt.Sprintf("@softrnic/%v/%s", addr, name)})
	}
	o := childOptions{Addr: addr, Share: true}
	traffic(t, newEnd(t, o.options()), newChild(t, o, verbs.RC), verbs.RC)
}

// TestSharedAddressKilled kills one of three processes at an address during its traffic. The
// others go on. Then its slot is used again: the packets that its peer still sends do not reach
// the new owner's queue pairs.
func TestSharedAddressKilled(t *testing.T) {
	needSharing(t)
	addr := ownaddr.Device(65)
	o := childOptions{Addr: addr, Share: true}
	first := newChild(t, o, verbs.RC) // the broker
	e := newEnd(t, o.options())
	peer := newEnd(t, Options{})
	connectChild(t, peer, first, verbs.ConnectOptions{Retries: 7})
	write := verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{peer.mr.SGE(0, 1<<20)}, RemoteAddr: first.Memory.Addr, RKey: first.Memory.RKey}
	for range 20 {
		peer.post(t, write)
	}
	for range 5 {
		peer.poll1(t)
	}
	slot := broker.QPNSlot(first.Endpoint.QPN)
	require.NotEqual(t, slot, broker.QPNSlot(e.qp.Num()))
	first.Kill()

	other := newChild(t, o, verbs.RC) // from a survivor, which is the broker now
	traffic(t, e, other, verbs.RC)
	reused := reopenSlot(t, o.options(), slot)
	heir := newEndOn(t, reused, verbs.RC)
	require.NotEqual(t, first.Endpoint.QPN, heir.qp.Num())
	from, err := verbs.LocalEndpoint(peer.dev, peer.qp, 100)
	require.NoError(t, err)
	to, err := verbs.LocalEndpoint(reused, heir.qp, 100)
	require.NoError(t, err)
	require.NoError(t, verbs.Connect(heir.qp, to, from, verbs.ConnectOptions{}))
	heir.recv(t, 1, 0, 8)
	for wc := peer.next(t); wc.Status == verbs.WCSuccess; wc = peer.next(t) {
	}
	require.NotZero(t, reused.drops.n[wire.DropUnknownQPN].Load(), "retransmissions")
	require.Equal(t, verbs.StateRTS, heir.qp.State())
	var wc [1]verbs.WC
	n, err := heir.cq.Poll(wc[:])
	require.NoError(t, err)
	require.Zero(t, n)
}

// TestSharedAddressICMP sends from one device of an address to a closed port. The kernel may pass the
// ICMP error to any device there, also to one that is connected to a queue pair of the same number: it
// ends no queue pair with another peer.
func TestSharedAddressICMP(t *testing.T) {
	needSharing(t)
	o := Options{Addr: ownaddr.Device(69), Share: true}
	peer := newEnd(t, Options{})
	to, err := verbs.LocalEndpoint(peer.dev, peer.qp, 100)
	require.NoError(t, err)
	closed := to
	closed.GID = verbs.GIDFromAddr(ownaddr.Device(70).Addr())
	var list []*end
	for i := range 16 { // the kernel selects by a hash of the addresses and ports
		e := newEnd(t, o)
		closed.UDPPort = uint16(40000 + i)
		list = append(list, e)
		from, err := verbs.LocalEndpoint(e.dev, e.qp, 100)
		require.NoError(t, err)
		if i == 0 {
			require.NoError(t, verbs.Connect(peer.qp, to, from, verbs.ConnectOptions{}))
			require.NoError(t, verbs.Connect(e.qp, from, to, verbs.ConnectOptions{}))
			continue
		}
		require.NoError(t, verbs.Connect(e.qp, from, closed, verbs.ConnectOptions{AckTimeout: time.Millisecond, Retries: 1}))
		e.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{e.mr.SGE(0, 8)}})
		require.Equal(t, verbs.WCRetryExcErr, e.next(t).Status)
	}
	for i := range 10 {
		peer.recv(t, uint64(i), 0, 8)
		list[0].post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{list[0].mr.SGE(0, 8)}})
		list[0].poll1(t)
		peer.poll1(t)
	}
}

// connectChild connects e's queue pair with that of a child.
func connectChild(t *testing.T, e *end, c *child, o verbs.ConnectOptions) {
	local, err := verbs.LocalEndpoint(e.dev, e.qp, 100)
	require.NoError(t, err)
	require.NoError(t, verbs.Connect(e.qp, local, *c.Endpoint, o))
	c.Do(order{Do: "connect", Peer: &local})
}

// reopenSlot opens and closes devices until one has the slot.
func reopenSlot(t *testing.T, o Options, slot int) *Device {
	for range broker.Slots {
		d, err := Open(o)
		require.NoError(t, err)
		if d.member.Slot() == slot {
			return d
		}
		require.NoError(t, d.Close())
	}
	require.Fail(t, "the slot stays in use")
	return nil
}

// TestSharedAddressMerged sends datagrams to three devices of an address in one batch, which the
// kernel passes as one to the first device, from a device that has its address alone and from
// another one at the address. Each arrives where it belongs, with the address of its sender.
func TestSharedAddressMerged(t *testing.T) {
	needSharing(t)
	o := Options{Addr: ownaddr.Device(66), Share: true}
	var list []*end
	for range 3 {
		e := newEndOf(t, o, verbs.UD)
		require.NoError(t, verbs.ActivateUD(e.qp, qkey, 0))
		list = append(list, e)
	}
	for name, o := range map[string]Options{"alone": {}, "sharing": o} {
		t.Run(name, func(t *testing.T) {
			from := newEndOf(t, o, verbs.UD)
			require.NoError(t, verbs.ActivateUD(from.qp, qkey, 0))
			ah := from.handle(t, list[0].dev)
			var wrs []verbs.SendWR
			left := []map[string]bool{{}, {}, {}} // payloads
			for i := range 30 {
				to := list[i%3]
				to.recv(t, uint64(i), 100*i, 100)
				payload := from.mr.Bytes()[100*i : 100*i+60]
				fill(payload, uint64(i))
				left[i%3][string(payload)] = true
				wrs = append(wrs, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{from.mr.SGE(100*i, 60)}, AH: ah, RemoteQPN: to.qp.Num(), RemoteQKey: qkey})
			}
			_, err := from.qp.PostSend(wrs)
			require.NoError(t, err)
			for i := range wrs { // in any order: the first ones may come by the socket, the others by shared memory
				to := list[i%3]
				wc := to.poll1(t)
				require.Equal(t, from.qp.Num(), wc.SrcQPN)
				slot := to.mr.Bytes()[100*wc.WRID:]
				src, _, _, ok := wire.ParseGRH(slot[:wire.GRHLen])
				require.True(t, ok)
				require.Equal(t, from.dev.Addr().Addr(), src)
				payload := string(slot[wire.GRHLen:100])
				require.Contains(t, left[i%3], payload)
				delete(left[i%3], payload)
			}
			for _, to := range list {
				require.Empty(t, to.dev.Stats().Drops)
			}
		})
	}
}
