// Package netns runs tests in network namespaces of their own, where they may
// make interfaces, take them down and give them any address. It needs Linux, root
// and iproute2; tests are skipped without.
//
//	a := netns.New(t)
//	a.IP("link add eth0 type dummy")
//	a.Do(func() { dev, err = rnic.Open(...) }) // its sockets stay in the namespace
package netns

import (
	"bytes"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A Namespace is a network namespace. It exists as long as the test and the sockets opened in it.
type Namespace struct {
	t   testing.TB
	dir *os.File // of /proc
}

// New creates a namespace with a loopback interface that is up.
func New(t testing.TB) *Namespace {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip of iproute2")
	}
	n := &Namespace{t: t}
	err := error(nil)
	runOnThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			n.dir, err = os.Open("/proc/thread-self/ns/net")
		}
	})
	if err != nil {
		t.Skipf("needs a network namespace: unshare: %v", err)
	}
	t.Cleanup(func() { n.dir.Close() })
	n.IP("link set lo up")
	return n
}

// runOnThread runs f on a thread that ends with it, and waits.
func runOnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)      // also when f ends the goroutine
		runtime.LockOSThread() // and never unlocks: the thread is not used again
		f()
	}()
	<-done
}

// Do calls f in the namespace, on a goroutine of its own, and waits. Sockets that
// this goroutine opens are the namespace's, those of other goroutines are not.
func (n *Namespace) Do(f func()) {
	n.t.Helper()
	ended := false
	runOnThread(func() {
		if err := unix.Setns(int(n.dir.Fd()), unix.CLONE_NEWNET); err != nil {
			n.t.Errorf("setns: %v", err)
			return
		}
		f()
		ended = true
	})
	if !ended {
		n.t.FailNow()
	}
}

// IP runs the ip command in the namespace. The words of args are its arguments.
func (n *Namespace) IP(args string) {
	n.t.Helper()
	n.Do(func() {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			n.t.Errorf("ip %s: %v: %s", args, err, out)
		}
	})
}

// waitOutput runs the ip command until its output contains text.
func (n *Namespace) waitOutput(args, text string) {
	n.t.Helper()
	n.Do(func() {
		var out []byte
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
			if out, _ = exec.Command("ip", strings.Fields(args)...).CombinedOutput(); bytes.Contains(out, []byte(text)) {
				return
			}
		}
		n.t.Errorf("ip %s: no %q in the output within 10 s: %s", args, text, out)
	})
}

// ConnectVeth connects two namespaces by a veth pair of that name, which is up, and returns the
// link-local addresses with the interface as zone.
func ConnectVeth(a, b *Namespace, name string) (ofA, ofB netip.Addr) {
	a.t.Helper()
	a.Do(func() {
		c := exec.Command("ip", "link", "add", name, "type", "veth", "peer", "name", name, "netns", "/proc/self/fd/3")
		c.ExtraFiles = []*os.File{b.dir} // its descriptor 3
		if out, err := c.CombinedOutput(); err != nil {
			a.t.Errorf("ip link add %s type veth: %v: %s", name, err, out)
		}
	})
	a.IP("link set " + name + " address 02:00:00:00:00:0a")
	b.IP("link set " + name + " address 02:00:00:00:00:0b")
	ofA, ofB = a.Up(name, "fe80::a/64"), b.Up(name, "fe80::b/64")
	// Known from the start: the first search for a neighbour may take a second.
	a.IP("neigh replace fe80::b lladdr 02:00:00:00:00:0b dev " + name)
	b.IP("neigh replace fe80::a lladdr 02:00:00:00:00:0a dev " + name)
	for _, n := range []*Namespace{a, b} { // before, packets are dropped
		n.waitOutput("link show "+name, "state UP")
		n.waitOutput("-6 route show table local dev "+name, "local fe80::")
		n.waitOutput("-6 route show dev "+name, "fe80::/64")
	}
	return ofA, ofB
}

// Up sets the only address of an interface, without duplicate address detection, and takes it up.
// A link-local address is returned with its zone.
func (n *Namespace) Up(name, prefix string) netip.Addr {
	n.t.Helper()
	n.IP("link set " + name + " addrgenmode none")
	nodad := ""
	ip := netip.MustParsePrefix(prefix).Addr()
	if ip.Is6() {
		nodad = " nodad"
		if ip.IsLinkLocalUnicast() {
			ip = ip.WithZone(name)
		}
	}
	n.IP("addr add " + prefix + " dev " + name + nodad)
	n.IP("link set " + name + " up")
	return ip
}
