package broker

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/mad"
)

// newVM returns a machine that executes a program as the kernel does.
func newVM(t require.TestingT, program []unix.SockFilter) *bpf.VM {
	var list []bpf.Instruction
	for _, f := range program {
		list = append(list, bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K}.Disassemble())
	}
	vm, err := bpf.NewVM(list)
	require.NoError(t, err)
	return vm
}

func selectSlot(t require.TestingT, vm *bpf.VM, packet []byte) int {
	slot, err := vm.Run(packet)
	require.NoError(t, err)
	return slot
}

// packetTo returns a packet to a queue pair, with a MAD behind the headers.
func packetTo(qpn uint32, h mad.Header, m mad.Message) []byte {
	b := make([]byte, wire.BTHLen+wire.DETHLen)
	header := wire.BTH{Opcode: wire.UDSendOnly, DestQPN: qpn, FECN: true, BECN: true}
	header.Put(b)
	var datagram [mad.Size]byte
	mad.Put(&datagram, h, m)
	return append(append(b, datagram[:]...), make([]byte, wire.ICRCLen)...)
}

// TestFilter compares the program with the rules for packets to queue pairs, and for all kinds of
// CM messages, for random services.
func TestFilter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var services [Slots][]uint32
		slots := map[uint32]int{}
		for _, s := range rapid.SliceOfNDistinct(rapid.Uint32(), 0, maxServices, rapid.ID[uint32]).Draw(t, "services") {
			slot := rapid.OneOf(rapid.IntRange(0, Slots-1), rapid.Just(9)).Draw(t, "slot") // one has many
			services[slot] = append(services[slot], s)
			slots[s] = slot
		}
		other := rapid.IntRange(0, Slots-1).Draw(t, "other")
		inUse := rapid.SliceOfNDistinct(rapid.IntRange(0, Slots-1), 0, Slots, rapid.ID[int]).Draw(t, "used")
		vm := newVM(t, buildFilter(services, inUse, other))

		qpn := rapid.Uint32Range(2, wire.QPNMask).Draw(t, "QPN")
		require.Equal(t, QPNSlot(qpn), selectSlot(t, vm, packetTo(qpn, mad.Header{Attr: mad.AttrRTU}, &mad.RTU{LocalID: 1})))
		ours, theirs := rapid.OneOf(rapid.Uint32(), rapid.Just[uint32](0)).Draw(t, "our ID"), rapid.Uint32().Draw(t, "their ID")
		for attr, m := range map[mad.Attr]mad.Message{
			mad.AttrMRA: &mad.MRA{LocalID: theirs, RemoteID: ours}, mad.AttrREJ: &mad.REJ{LocalID: theirs, RemoteID: ours},
			mad.AttrREP: &mad.REP{LocalID: theirs, RemoteID: ours}, mad.AttrRTU: &mad.RTU{LocalID: theirs, RemoteID: ours},
			mad.AttrDREQ: &mad.DREQ{LocalID: theirs, RemoteID: ours}, mad.AttrDREP: &mad.DREP{LocalID: theirs, RemoteID: ours},
			mad.AttrLAP: &mad.LAP{LocalID: theirs, RemoteID: ours}, mad.AttrAPR: &mad.APR{LocalID: theirs, RemoteID: ours},
			mad.AttrSIDRRep: &mad.SIDRRep{RequestID: ours, ServiceID: mad.ServiceID(theirs)},
		} {
			want := other
			if slot := int(ours >> idShift); ours != 0 && slices.Contains(inUse, slot) {
				want = slot
			}
			require.Equal(t, want, selectSlot(t, vm, packetTo(wire.QPNGSI, mad.Header{Attr: attr}, m)), attr)
		}
		requests := []uint32{rapid.Uint32().Draw(t, "service")}
		for s := range slots {
			requests = append(requests, s)
		}
		for _, s := range requests {
			want, ok := slots[s]
			if !ok {
				want = other
			}
			for _, high := range []uint64{0, 1 << 32, 1 << 63} {
				if high != 0 {
					want = other
				}
				id := mad.ServiceID(high | uint64(s))
				require.Equal(t, want, selectSlot(t, vm, packetTo(wire.QPNGSI, mad.Header{Attr: mad.AttrREQ}, &mad.REQ{LocalID: theirs, ServiceID: id})))
				require.Equal(t, want, selectSlot(t, vm, packetTo(wire.QPNGSI, mad.Header{Attr: mad.AttrSIDRReq}, &mad.SIDRReq{RequestID: theirs, ServiceID: id})))
			}
		}
		foreign := packetTo(wire.QPNGSI, mad.Header{Attr: mad.AttrRTU}, &mad.RTU{RemoteID: ours})
		foreign[classOffset] = 0x81
		require.Equal(t, other, selectSlot(t, vm, foreign))
	})
}

// TestFilterShortPacket checks that packets that end too early go to slot 0.
func TestFilterShortPacket(t *testing.T) {
	vm := newVM(t, buildFilter([Slots][]uint32{}, nil, 7))
	request := packetTo(wire.QPNGSI, mad.Header{Attr: mad.AttrREQ}, &mad.REQ{LocalID: 1, ServiceID: 2})
	for n := range serviceOffset + 8 {
		slot, err := vm.Run(request[:n])
		if err == nil { // the machine fails where the kernel returns 0
			require.Zero(t, slot, n)
		}
	}
	require.Equal(t, 7, selectSlot(t, vm, request))
}

// TestFilterLimit checks that the kernel accepts the program of the largest table.
func TestFilterLimit(t *testing.T) {
	m, err := Join(testAddr(1))
	require.NoError(t, err)
	defer m.Close()
	for i := range maxServices {
		ok, err := m.Register(uint64(i))
		require.NoError(t, err)
		require.True(t, ok)
	}
	_, err = m.Register(maxServices)
	require.ErrorIs(t, err, ErrServices)
	require.EqualError(t, err, "shared address "+testAddr(1).String()+": register service: broker: too many services: the processes of the address have 1016")
	m.Unregister(3)
	ok, err := m.Register(maxServices)
	require.NoError(t, err)
	require.True(t, ok)
	_, err = m.Register(1 << 32)
	require.ErrorContains(t, err, "service 0x100000000: want an ID of 32 bits")
}

// TestEncapsulation checks that an encapsulated packet is selected as without, that its source is
// kept, and that IsForSlot agrees with the program.
func TestEncapsulation(t *testing.T) {
	var all []int
	for slot := range Slots {
		all = append(all, slot)
	}
	rapid.Check(t, func(t *rapid.T) {
		service, slot := rapid.Uint32().Draw(t, "service"), rapid.IntRange(0, Slots-1).Draw(t, "slot")
		var services [Slots][]uint32
		services[slot] = []uint32{service}
		vm := newVM(t, buildFilter(services, all, 5))
		ours := rapid.Uint32Min(1).Draw(t, "our ID")
		headers := []mad.Header{{Attr: mad.AttrREQ}, {Attr: mad.AttrRTU}, {Attr: mad.AttrSIDRReq}, {Attr: mad.AttrSIDRRep}}
		messages := []mad.Message{&mad.REQ{ServiceID: mad.ServiceID(service)}, &mad.RTU{RemoteID: ours}, &mad.SIDRReq{ServiceID: mad.ServiceID(service)}, &mad.SIDRRep{RequestID: ours}}
		k := rapid.IntRange(0, len(messages)-1).Draw(t, "message")
		qpn := rapid.OneOf(rapid.Just[uint32](wire.QPNGSI), rapid.Uint32Range(0, wire.QPNMask)).Draw(t, "QPN")
		pkt := packetTo(qpn, headers[k], messages[k])

		src := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), 4791)
		b := make([]byte, EncapsulationLen+len(pkt)+wire.ICRCLen)
		direct := rapid.IntRange(0, Slots-1).Draw(t, "explicit slot")
		PutEncapsulation(b, direct, src, 3, 77)
		require.Equal(t, direct, selectSlot(t, vm, b))
		PutEncapsulation(b, SlotOfPacket, src, 3, 77)
		copy(b[EncapsulationLen:], pkt)
		want := selectSlot(t, vm, pkt)
		require.Equal(t, want, selectSlot(t, vm, b))
		require.True(t, IsEncapsulated(b))
		require.False(t, IsEncapsulated(pkt))
		from, tos, id, inside := Decapsulate(b)
		require.Equal(t, src, from)
		require.EqualValues(t, 3, tos)
		require.EqualValues(t, 77, id)
		require.Equal(t, pkt, inside)

		request := qpn == wire.QPNGSI && (k == 0 || k == 2)
		require.Equal(t, !request, IsForSlot(pkt, want))
		require.False(t, IsForSlot(pkt, want^1))
		require.True(t, MustSeparate(pkt, b) && MustSeparate(b, pkt) && MustSeparate(b, b))
		other := packetTo(qpn^1, headers[k], messages[k])
		require.Equal(t, qpn < 2, MustSeparate(pkt, other))
		require.True(t, MustSeparate(pkt, packetTo(qpn^1<<22, headers[k], messages[k])))
	})
}

// TestIsWithdrawal checks that only a REJ without an ID of ours is a withdrawal.
func TestIsWithdrawal(t *testing.T) {
	rej := func(qpn, ours uint32) []byte {
		return packetTo(qpn, mad.Header{Attr: mad.AttrREJ}, &mad.REJ{LocalID: 7, RemoteID: ours, Reason: mad.RejTimeout})
	}
	require.True(t, IsWithdrawal(rej(wire.QPNGSI, 0)))
	require.False(t, IsForSlot(rej(wire.QPNGSI, 0), 0))
	require.False(t, IsWithdrawal(rej(wire.QPNGSI, 1)))
	require.False(t, IsWithdrawal(rej(17, 0)))
	require.False(t, IsWithdrawal(packetTo(wire.QPNGSI, mad.Header{Attr: mad.AttrRTU}, &mad.RTU{LocalID: 7})))
	require.False(t, IsWithdrawal(rej(wire.QPNGSI, 0)[:serviceOffset-1]))
}
