// Package netnstest runs tests in network namespaces (package netns). Tests are skipped where there are
// none.
//
//	a := netnstest.New(t)
//	a.IP("link add eth0 type dummy")
//	a.Do(func() { dev, err = rnic.Open(...) }) // its sockets stay in the namespace
package netnstest

import (
	"net/netip"
	"testing"

	"github.com/softrnic/softrnic/internal/netns"
)

// A Namespace is a network namespace. It exists as long as the test and the sockets opened in it.
type Namespace struct {
	t  testing.TB
	ns *netns.Namespace
}

// New creates a namespace with a loopback interface that is up.
func New(t testing.TB) *Namespace {
	t.Helper()
	ns, err := netns.New()
	if err != nil {
		t.Skipf("needs root and iproute2: %v", err)
	}
	t.Cleanup(func() { ns.Close() })
	return &Namespace{t, ns}
}

// check fails the test if err is not nil.
func (n *Namespace) check(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// Do calls f in the namespace, on a goroutine of its own, and waits. Sockets that
// this goroutine opens are the namespace's, those of other goroutines are not.
func (n *Namespace) Do(f func()) {
	n.t.Helper()
	n.check(n.ns.Do(func() error { f(); return nil }))
}

// IP runs the ip command in the namespace. The words of args are its arguments.
func (n *Namespace) IP(args string) {
	n.t.Helper()
	n.check(n.ns.IP(args))
}

// ConnectVeth connects two namespaces by a veth pair of that name, which is up, and returns the
// link-local addresses with the interface as zone.
func ConnectVeth(a, b *Namespace, name string) (ofA, ofB netip.Addr) {
	a.t.Helper()
	ofA, ofB, err := netns.ConnectVeth(a.ns, b.ns, name)
	a.check(err)
	return ofA, ofB
}

// Up sets the only address of an interface, without duplicate address detection, and takes it up.
// A link-local address is returned with its zone.
func (n *Namespace) Up(name, prefix string) netip.Addr {
	n.t.Helper()
	ip, err := n.ns.Up(name, prefix)
	n.check(err)
	return ip
}
