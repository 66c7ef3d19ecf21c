package netns

import "net/netip"

// A TB is a test or benchmark, of package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatal(args ...any)
	Skipf(format string, args ...any)
}

// A TestNamespace is a network namespace of a test, which fails with its methods. It exists as long as
// the test and the sockets opened in it.
type TestNamespace struct {
	t  TB
	ns *Namespace
}

// NewTest creates a namespace with a loopback interface that is up. It skips t where there are none.
func NewTest(t TB) *TestNamespace {
	t.Helper()
	ns, err := New()
	if err != nil {
		t.Skipf("needs root and iproute2: %v", err)
	}
	t.Cleanup(func() { ns.Close() })
	return &TestNamespace{t, ns}
}

// check fails the test if err is not nil.
func (n *TestNamespace) check(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// Do calls f in the namespace, on a goroutine of its own, and waits. Sockets that
// this goroutine opens are the namespace's, those of other goroutines are not.
func (n *TestNamespace) Do(f func()) {
	n.t.Helper()
	n.check(n.ns.Do(func() error { f(); return nil }))
}

// IP runs the ip command in the namespace. The words of args are its arguments.
func (n *TestNamespace) IP(args string) {
	n.t.Helper()
	n.check(n.ns.IP(args))
}

// ConnectTestVeth connects two namespaces by a veth pair of that name, which is up, and returns the
// link-local addresses with the interface as zone.
func ConnectTestVeth(a, b *TestNamespace, name string) (ofA, ofB netip.Addr) {
	a.t.Helper()
	ofA, ofB, err := ConnectVeth(a.ns, b.ns, name)
	a.check(err)
	return ofA, ofB
}

// Up sets the only address of an interface, without duplicate address detection, and takes it up.
// A link-local address is returned with its zone.
func (n *TestNamespace) Up(name, prefix string) netip.Addr {
	n.t.Helper()
	ip, err := n.ns.Up(name, prefix)
	n.check(err)
	return ip
}
