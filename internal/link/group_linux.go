package link

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// OpenGroup opens n links on one address, among which the kernel steers
// packets by destination QPN: QPN modulo n is the index of the link. A GSO
// group is not split: the QPN of its first packet selects the link.
func OpenGroup(o Options, n int) ([]Conn, error) {
	if n == 1 {
		c, err := OpenUDP(o)
		return []Conn{c}, err
	}
	if o.Portable {
		return nil, fmt.Errorf("link: %d links on one address need the fast path", n)
	}
	c, err := OpenUDP(o) // fails if anyone has the address, another group as well
	if err != nil {
		return nil, err
	}
	conns := []Conn{c}
	first, ok := c.(*udp)
	if !ok { // SOFTRNIC_LINK=portable
		closeAll(conns)
		return nil, fmt.Errorf("link: %d links on one address need the fast path, which %s disables", n, EnvVar)
	}
	if err := reusePort(first.fd); err != nil {
		closeAll(conns)
		return nil, err
	}
	o.reusePort = true
	o.Addr = netip.AddrPortFrom(o.Addr.Addr(), c.LocalAddr().Port()) // the system may have chosen the port
	for range n - 1 {
		c, err := OpenUDP(o)
		if err != nil {
			closeAll(conns)
			return nil, err
		}
		conns = append(conns, c)
	}
	if err := steerByQPN(first.fd, n); err != nil {
		closeAll(conns)
		return nil, err
	}
	return conns, nil
}

func closeAll(conns []Conn) {
	for _, c := range conns {
		c.Close()
	}
}

// reusePort lets further sockets that ask for it bind the address of this one.
func reusePort(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return fmt.Errorf("link: %w", os.NewSyscallError("setsockopt SO_REUSEPORT", err))
	}
	return nil
}

// steerByQPN attaches a classic BPF program to the group of sockets that
// share fd's address. It sees the UDP payload and returns the index of the
// socket, in the order in which they were bound.
func steerByQPN(fd, n int) error {
	const qpnWord = 4 // offset of the BTH word with the destination QPN in its low 24 bits
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: qpnWord},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 1<<24 - 1},
		{Code: unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K, K: uint32(n)},
		{Code: unix.BPF_RET | unix.BPF_A},
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &prog)
	if err != nil {
		return fmt.Errorf("link: steering by queue pair: %w", os.NewSyscallError("setsockopt SO_ATTACH_REUSEPORT_CBPF", err))
	}
	return nil
}
