package broker

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/mad"
)

// attachFilter makes the kernel select sockets by the table. The program of a group is replaced
// at once for all packets.
func attachFilter(fd int, t *table) error {
	program := buildFilter(t.services(), t.usedSlots(), t.managerSlot())
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &prog); err != nil {
		return fmt.Errorf("program of %d instructions: %w", len(program), os.NewSyscallError("setsockopt SO_ATTACH_REUSEPORT_CBPF", err))
	}
	return nil
}

// buildFilter returns a program that sees the UDP payload and returns the slot. Datagrams to
// QP 1 that belong to no slot in use go to slot other. A load beyond the packet ends the program
// with slot 0. X is the offset of the packet, which may be encapsulated.
func buildFilter(services [Slots][]uint32, used []int, other int) []unix.SockFilter {
	byID := selectByID(used, other)
	toServices := uint8(len(byID) + 4)
	p := []unix.SockFilter{
		{Code: unix.BPF_LDX | unix.BPF_W | unix.BPF_IMM, K: 0},
		loadField(unix.BPF_B, 0),
		jumpEqual(encapsulationOpcode, 0, 5),
		loadField(unix.BPF_B, encapsulationSlotOffset),
		jumpEqual(0, 2, 0),
		{Code: unix.BPF_ALU | unix.BPF_SUB | unix.BPF_K, K: 1},
		{Code: unix.BPF_RET | unix.BPF_A},
		{Code: unix.BPF_LDX | unix.BPF_W | unix.BPF_IMM, K: EncapsulationLen},

		loadField(unix.BPF_W, qpnOffset),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: wire.QPNMask},
		jumpEqual(wire.QPNGSI, 2, 0),
		{Code: unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K, K: qpnShift},
		{Code: unix.BPF_RET | unix.BPF_A},

		loadField(unix.BPF_B, classOffset),
		jumpEqual(classCM, 1, 0),
		returnSlot(other),
		loadField(unix.BPF_H, attrOffset),
		jumpEqual(uint32(mad.AttrREQ), toServices+1, 0),
		jumpEqual(uint32(mad.AttrSIDRReq), toServices, 0),
		jumpEqual(uint32(mad.AttrSIDRRep), 2, 0),
		loadField(unix.BPF_W, ownIDOffset),
		{Code: unix.BPF_JMP | unix.BPF_JA, K: 1},
		loadField(unix.BPF_W, sidrIDOffset),
	}
	p = append(p, byID...)
	p = append(p,
		loadField(unix.BPF_W, serviceOffset),
		jumpEqual(0, 1, 0),
		returnSlot(other),
		loadField(unix.BPF_W, serviceOffset+4))
	for slot, list := range services {
		p = appendServices(p, list, slot)
	}
	return append(p, returnSlot(other))
}

// selectByID returns the instructions that end with the slot of the ID in A, if it is used, or
// else with slot other. A REJ has ID 0 if the peer withdraws a request before it knows our ID.
func selectByID(used []int, other int) []unix.SockFilter {
	n := len(used)
	p := []unix.SockFilter{
		jumpEqual(0, uint8(n+1), 0),
		{Code: unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K, K: idShift},
	}
	for i, slot := range used {
		p = append(p, jumpEqual(uint32(slot), uint8(n-i), 0))
	}
	return append(p, returnSlot(other), unix.SockFilter{Code: unix.BPF_RET | unix.BPF_A})
}

// maxJump is the longest conditional jump.
const maxJump = 255

// appendServices appends the instructions that return the slot if A is one of the services.
func appendServices(p []unix.SockFilter, services []uint32, slot int) []unix.SockFilter {
	for len(services) > 0 {
		n := min(len(services), maxJump)
		for i, s := range services[:n-1] {
			p = append(p, jumpEqual(s, uint8(n-1-i), 0))
		}
		p = append(p, jumpEqual(services[n-1], 0, 1), returnSlot(slot))
		services = services[n:]
	}
	return p
}

// loadField returns the instruction that loads a big-endian word, half-word or byte at an
// offset in the packet.
func loadField(size, offset int) unix.SockFilter {
	return unix.SockFilter{Code: uint16(unix.BPF_LD | size | unix.BPF_IND), K: uint32(offset)}
}

// jumpEqual returns the instruction that skips yes instructions if A is k, or else no.
func jumpEqual(k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

// returnSlot returns the instruction that ends with a slot.
func returnSlot(slot int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: uint32(slot)}
}
