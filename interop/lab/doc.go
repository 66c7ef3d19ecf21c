// Package lab boots a real Linux host with kernel soft-RoCE (rdma_rxe), and
// has the test binary run beside it: QEMU's guest of Debian packages on one end
// of a cable, the tests and the programs they start on the other.
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
// # What it needs
//
// Linux on amd64 with apt-get, root or unprivileged user namespaces,
// /dev/net/tun, QEMU (qemu-system-x86) and ip (iproute2). What is missing is
// the text with which every test is skipped. The first run downloads about 60 MB
// of packages and makes the guest of them, in the user's cache directory
// (softrnic/interop); they are not installed.
//
// # What it leaves
//
// Main runs the test binary once more in namespaces of its own for network,
// processes and mounts. However that one ends, the kernel ends everything that
// it started and takes interfaces and addresses away; only the cache stays.
package lab
