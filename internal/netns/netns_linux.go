// Package netns makes network namespaces, in which a process may make interfaces, take them down and
// give them any address. It needs Linux, root and iproute2.
//
//	a, err := netns.New()
//	err = a.IP("link add eth0 type dummy")
//	err = a.Do(func() error { dev, err = rnic.Open(...); return err }) // its sockets stay in the namespace
package netns

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Namespace is a network namespace. It exists until it and the sockets opened in it are closed.
type Namespace struct{ dir *os.File } // of /proc

// New creates a namespace with a loopback interface that is up.
func New() (*Namespace, error) {
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, fmt.Errorf("network namespace: %w", err)
	}
	n := &Namespace{}
	err := error(nil)
	runOnThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			n.dir, err = os.Open("/proc/thread-self/ns/net")
		}
	})
	if err != nil {
		return nil, fmt.Errorf("network namespace: unshare: %w", err)
	}
	if err := n.IP("link set lo up"); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Close gives up the namespace.
func (n *Namespace) Close() error { return n.dir.Close() }

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
func (n *Namespace) Do(f func() error) error {
	err := error(errEnded)
	runOnThread(func() {
		if e := unix.Setns(int(n.dir.Fd()), unix.CLONE_NEWNET); e != nil {
			err = fmt.Errorf("network namespace: setns: %w", e)
			return
		}
		err = f()
	})
	return err
}

// errEnded is the error of a function that ends its goroutine.
var errEnded = fmt.Errorf("network namespace: the goroutine has ended")

// Command runs a program in the namespace and returns its output. The words of args are its arguments.
func (n *Namespace) Command(name, args string) (out []byte, err error) {
	err = n.Do(func() error {
		if out, err = exec.Command(name, strings.Fields(args)...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w: %s", name, args, err, bytes.TrimSpace(out))
		}
		return nil
	})
	return out, err
}

// IP runs the ip command in the namespace. The words of args are its arguments.
func (n *Namespace) IP(args string) error {
	_, err := n.Command("ip", args)
	return err
}

// waitOutput runs the ip command until its output contains text.
func (n *Namespace) waitOutput(args, text string) error {
	var out []byte
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if out, _ = n.Command("ip", args); bytes.Contains(out, []byte(text)) {
			return nil
		}
	}
	return fmt.Errorf("ip %s: no %q in the output within 10 s: %s", args, text, out)
}

// ConnectVeth connects two namespaces by a veth pair of that name, which is up, and returns the
// link-local addresses with the interface as zone.
func ConnectVeth(a, b *Namespace, name string) (ofA, ofB netip.Addr, err error) {
	err = a.Do(func() error {
		c := exec.Command("ip", "link", "add", name, "type", "veth", "peer", "name", name, "netns", "/proc/self/fd/3")
		c.ExtraFiles = []*os.File{b.dir} // its descriptor 3
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("ip link add %s type veth: %w: %s", name, err, out)
		}
		return nil
	})
	if err != nil {
		return ofA, ofB, err
	}
	sides := []struct {
		n           *Namespace
		own, peer   string
		ownL, peerL string // MAC addresses
		addr        *netip.Addr
	}{
		{a, "fe80::a", "fe80::b", "02:00:00:00:00:0a", "02:00:00:00:00:0b", &ofA},
		{b, "fe80::b", "fe80::a", "02:00:00:00:00:0b", "02:00:00:00:00:0a", &ofB},
	}
	for _, s := range sides {
		if err := s.n.IP("link set " + name + " address " + s.ownL); err != nil {
			return ofA, ofB, err
		}
	}
	for _, s := range sides {
		if *s.addr, err = s.n.Up(name, s.own+"/64"); err != nil {
			return ofA, ofB, err
		}
		// Known from the start: the first search for a neighbour may take a second.
		if err := s.n.IP("neigh replace " + s.peer + " lladdr " + s.peerL + " dev " + name); err != nil {
			return ofA, ofB, err
		}
	}
	for _, s := range sides { // before, packets are dropped
		for _, w := range [][2]string{
			{"link show " + name, "state UP"}, {"-6 route show table local dev " + name, "local fe80::"}, {"-6 route show dev " + name, "fe80::/64"},
		} {
			if err := s.n.waitOutput(w[0], w[1]); err != nil {
				return ofA, ofB, err
			}
		}
	}
	return ofA, ofB, nil
}

// Up sets the only address of an interface, without duplicate address detection, and takes it up.
// A link-local address is returned with its zone.
func (n *Namespace) Up(name, prefix string) (netip.Addr, error) {
	ip := netip.MustParsePrefix(prefix).Addr()
	nodad := ""
	if ip.Is6() {
		nodad = " nodad"
		if ip.IsLinkLocalUnicast() {
			ip = ip.WithZone(name)
		}
	}
	for _, args := range []string{"link set " + name + " addrgenmode none", "addr add " + prefix + " dev " + name + nodad, "link set " + name + " up"} {
		if err := n.IP(args); err != nil {
			return ip, err
		}
	}
	return ip, nil
}
