package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Without an address given, each process has a device address of its own in 127.0.0.0/8, which a
// user does not know: a client that connects to localhost, or to another address of the host, means
// the process that listens on that port. So each process names the ports that it has bound, by
// sockets in the abstract namespace: these belong to the network namespace, are listed in
// /proc/net/unix and end with their process.

// A boundName is a name of a port with the number of its users.
type boundName struct {
	socket net.Listener
	users  int
}

// boundNames are the names of this process.
var boundNames = map[string]*boundName{}

const namePrefix = "@softrnic-rdma-cm/"

// nameOf returns the name of a port of a device's address.
func nameOf(p portKey, addr netip.Addr) string {
	return fmt.Sprintf("%s%d/%#04x/%d/%s", namePrefix, os.Getuid(), uint16(p.space), p.port, addr)
}

// publishName publishes a port of a device. Each call needs a withdrawName. A name that another
// process has is left to it.
func publishName(p portKey, addr netip.Addr) {
	name := nameOf(p, addr)
	if n := boundNames[name]; n != nil {
		n.users++
		return
	}
	l, err := net.Listen("unix", name)
	if err != nil {
		return
	}
	boundNames[name] = &boundName{socket: l, users: 1}
	go func() { // connections only show the owner
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
}

// withdrawName ends one publishName.
func withdrawName(p portKey, addr netip.Addr) {
	name := nameOf(p, addr)
	n := boundNames[name]
	if n == nil {
		return
	}
	if n.users--; n.users == 0 {
		delete(boundNames, name)
		n.socket.Close()
	}
}

// findNames returns the addresses of the adapters at which processes of this user have bound a port.
func findNames(p portKey) (addrs []netip.Addr) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil
	}
	defer f.Close()
	prefix := strings.TrimSuffix(nameOf(p, netip.Addr{}), netip.Addr{}.String())
	for lines := bufio.NewScanner(f); lines.Scan(); {
		_, rest, found := strings.Cut(lines.Text(), prefix)
		if !found {
			continue
		}
		if addr, err := netip.ParseAddr(rest); err == nil && isOwn(prefix+rest) {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// isOwn reports whether a process of this user has the name.
func isOwn(name string) bool {
	c, err := net.Dial("unix", name)
	if err != nil {
		return false
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false
	}
	own := false
	err = raw.Control(func(fd uintptr) {
		u, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		own = err == nil && int(u.Uid) == os.Getuid()
	})
	return err == nil && own
}

// redirect returns the address to connect to: dst, or the address at which the port is bound if dst
// is the host's loopback address, or an address of the host without an adapter.
func redirect(p portKey, dst netip.AddrPort) netip.AddrPort {
	addr := dst.Addr().Unmap()
	if !isHostAddr(addr) {
		return dst
	}
	names := findNames(p)
	localhost := addr == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || addr == netip.IPv6Loopback()
	if len(names) == 0 || slices.Contains(names, addr) || !localhost && hasAdapter(addr) {
		return dst
	}
	return netip.AddrPortFrom(names[0], dst.Port())
}

// hasAdapter reports whether a socket of this host is bound to the port of RoCE at the address,
// without the wildcard.
func hasAdapter(addr netip.Addr) bool {
	table := "/proc/net/udp"
	if addr.Is6() {
		table = "/proc/net/udp6"
	}
	f, err := os.Open(table)
	if err != nil {
		return false
	}
	defer f.Close()
	want := tableEntry(addr, rocePort)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[1] == want {
			return true
		}
	}
	return false
}

const rocePort = 4791

// tableEntry returns an address as the kernel's tables have it: words of 32 bits in the byte order of
// the host.
func tableEntry(addr netip.Addr, port int) string {
	var b strings.Builder
	for bytes := addr.AsSlice(); len(bytes) > 0; bytes = bytes[4:] {
		fmt.Fprintf(&b, "%08X", binary.NativeEndian.Uint32(bytes))
	}
	return b.String() + ":" + fmt.Sprintf("%04X", port)
}
