package link

import (
	"os"
	"strings"
)

// rxeHoldsPort reports whether the kernel's rdma_rxe holds UDP port 4791 in
// this network namespace: it is loaded, and the port is bound on all addresses,
// as only rdma_rxe does.
func rxeHoldsPort() bool {
	for _, file := range []string{"/proc/net/udp", "/proc/net/udp6"} {
		sockets, err := os.ReadFile(file)
		if err == nil && holdsPort(string(sockets)) {
			modules, err := os.ReadFile("/proc/modules")
			return err == nil && hasModule(string(modules), "rdma_rxe")
		}
	}
	return false
}

// holdsPort reports whether the text of /proc/net/udp or udp6, in which
// addresses and ports are hexadecimal, has a socket on port 4791 of all
// addresses.
func holdsPort(sockets string) bool {
	for line := range strings.Lines(sockets) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		addr, port, _ := strings.Cut(fields[1], ":")
		if port == "12B7" && strings.Trim(addr, "0") == "" {
			return true
		}
	}
	return false
}

// hasModule reports whether the text of /proc/modules has the module.
func hasModule(modules, name string) bool {
	for line := range strings.Lines(modules) {
		if first, _, _ := strings.Cut(line, " "); first == name {
			return true
		}
	}
	return false
}
