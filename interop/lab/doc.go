// Package lab boots a Linux virtual machine with kernel soft-RoCE (rdma_rxe) and runs the test
// binary next to it: a QEMU guest of Debian packages on one side of a virtual link, the tests and
// the programs they start on the other.
//
//	this network namespace                                 guest
//	192.0.2.1      tap0 ------------------------- eth0  192.0.2.2      rxe0
//	2001:db8::1                                         2001:db8::2
//	198.51.100.1   tap1 ------------------------- eth1  198.51.100.2   control
//
// A test binary uses it so:
//
//	func TestMain(m *testing.M) { lab.Main(m.Run) }
//
//	func TestPingPong(t *testing.T) {
//		g := lab.Need(t) // boots at first use; skips with the reason where it cannot
//		out, err := g.Output(ctx, "ibv_devinfo", "-d", "rxe0")
//	}
//
// # Prerequisites
//
// Linux on amd64 with apt-get, root or unprivileged user namespaces,
// /dev/net/tun, QEMU (qemu-system-x86) and ip (iproute2). If one is
// missing, every test is skipped with that reason. The first run downloads about 60 MB of
// packages and builds the guest from them in the user's cache directory (softrnic/interop). It
// does not install them.
//
// # Cleanup
//
// Main runs the test binary again in its own namespaces for network, processes and mounts.
// However that process ends, the kernel kills its descendants and removes the interfaces and
// addresses. Only the cache remains.
package lab
