package rnic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/netns"
	"github.com/softrnic/softrnic/verbs"
)

// A tbfPath is a cable between two namespaces, of which the direction from a to b has a rate and a
// buffer: a token bucket filter of tc.
type tbfPath struct {
	t        *testing.T
	a, b     *netns.Namespace
	from, to netip.Addr
	buffer   int // bytes
}

// newTBFPath makes a cable of that rate, for example "200mbit", and MTU.
func newTBFPath(t *testing.T, rate string, buffer, mtu int) *tbfPath {
	if _, err := exec.LookPath("tc"); err != nil {
		t.Skip("needs tc of iproute2")
	}
	p := &tbfPath{t: t, a: netns.New(t), b: netns.New(t), buffer: buffer}
	netns.ConnectVeth(p.a, p.b, "cable0")
	for _, n := range []*netns.Namespace{p.a, p.b} {
		n.IP(fmt.Sprintf("link set cable0 mtu %d", mtu))
	}
	p.from, p.to = p.a.Up("cable0", "10.9.0.1/24"), p.b.Up("cable0", "10.9.0.2/24")
	p.a.IP("neigh replace 10.9.0.2 lladdr 02:00:00:00:00:0b dev cable0")
	p.b.IP("neigh replace 10.9.0.1 lladdr 02:00:00:00:00:0a dev cable0")
	if out, err := p.tc(fmt.Sprintf("qdisc add dev cable0 root tbf rate %s burst 20kb limit %d", rate, buffer)); err != nil {
		t.Skipf("needs the token bucket filter of tc: %v: %s", err, out)
	}
	return p
}

// tc runs the tc command in a.
func (p *tbfPath) tc(args string) (out []byte, err error) {
	p.a.Do(func() { out, err = exec.Command("tc", strings.Fields(args)...).CombinedOutput() })
	return out, err
}

// backlog returns the bytes in the buffer.
func (p *tbfPath) backlog() int {
	out, err := p.tc("-s -j qdisc show dev cable0")
	require.NoError(p.t, err)
	var list []struct{ Backlog int }
	require.NoError(p.t, json.Unmarshal(out, &list))
	return list[0].Backlog
}

// meanBacklog samples the buffer for d.
func (p *tbfPath) meanBacklog(d time.Duration) int {
	sum, n := 0, 0
	for end := time.Now().Add(d); time.Now().Before(end); n++ {
		sum += p.backlog()
		time.Sleep(20 * time.Millisecond)
	}
	return sum / n
}

// A load moves data from a to b until it is stopped, and counts the bytes.
type load struct {
	bytes atomic.Int64
	stop  func()
}

// startWrites starts a stream of RDMA writes between two devices.
func startWrites(t *testing.T, x, y *end) *load {
	q, peer := x.newQP(t, verbs.RC), y.newQP(t, verbs.RC)
	connect(t, x.dev, q, y.dev, peer)
	l, done := &load{}, make(chan struct{})
	const size, ahead = 16 << 10, 16
	ctx := soon(t)
	var stopped atomic.Bool
	wr := []verbs.SendWR{{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGList: []verbs.SGE{x.mr.SGE(0, size)}, RemoteAddr: y.mr.Addr(), RKey: y.mr.RKey()}}
	for range ahead {
		_, err := q.PostSend(wr)
		require.NoError(t, err)
	}
	go func() {
		defer close(done)
		var wc [16]verbs.WC
		for inFlight := ahead; inFlight > 0; {
			n, err := x.cq.PollWait(ctx, wc[:])
			if err != nil {
				t.Errorf("poll: %v", err)
				return
			}
			for i := range n {
				if wc[i].Status != verbs.WCSuccess {
					t.Errorf("completion: %v", wc[i].Err())
					return
				}
			}
			l.bytes.Add(int64(n) * size)
			inFlight -= n
			for ; inFlight < ahead && !stopped.Load(); inFlight++ {
				if _, err := q.PostSend(wr); err != nil {
					t.Errorf("post: %v", err)
					return
				}
			}
		}
	}()
	l.stop = sync.OnceFunc(func() { stopped.Store(true); <-done })
	t.Cleanup(l.stop)
	return l
}

// startTCP starts a TCP stream with that congestion control.
func (p *tbfPath) startTCP(algorithm string) *load {
	t, l := p.t, &load{}
	if known, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control"); !bytes.Contains(known, []byte(algorithm)) {
		t.Skip("the kernel has no TCP " + algorithm)
	}
	var listener net.Listener
	var conn net.Conn
	var err error
	p.b.Do(func() { listener, err = net.Listen("tcp", netip.AddrPortFrom(p.to, 5001).String()) })
	require.NoError(t, err)
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 256<<10)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			l.bytes.Add(int64(n))
		}
	}()
	p.a.Do(func() {
		conn, err = net.Dial("tcp", listener.Addr().String())
		if err == nil {
			var raw, _ = conn.(*net.TCPConn).SyscallConn()
			raw.Control(func(fd uintptr) {
				err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, algorithm)
			})
		}
	})
	require.NoError(t, err)
	go func() {
		defer func() { done <- struct{}{} }()
		buf := make([]byte, 64<<10)
		for {
			if _, err := conn.Write(buf); err != nil {
				return
			}
		}
	}()
	l.stop = sync.OnceFunc(func() { conn.Close(); listener.Close(); <-done; <-done })
	t.Cleanup(l.stop)
	return l
}

// rates measures loads for d, in Mbit/s.
func rates(d time.Duration, loads ...*load) (list []float64) {
	before := make([]int64, len(loads))
	for i, l := range loads {
		before[i] = l.bytes.Load()
	}
	start := time.Now()
	time.Sleep(d)
	for i, l := range loads {
		list = append(list, float64(l.bytes.Load()-before[i])*8/1e6/time.Since(start).Seconds())
	}
	return list
}

// jain returns Jain's index of fairness: 1 for equal rates, 1/n if one of n has everything.
func jain(rates []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, r := range rates {
		sum, squares = sum+r, squares+r*r
	}
	return sum * sum / squares / float64(len(rates))
}

// measureUntil measures seconds of loads, at most attempts of them, until ok accepts one: other programs
// on the machine may stop any process for a good part of a second.
func (p *tbfPath) measureUntil(attempts int, loads []*load, ok func(rates []float64, backlog int) bool) {
	p.t.Helper()
	for range attempts {
		backlog := make(chan int)
		go func() { backlog <- p.meanBacklog(time.Second) }()
		r, queued := rates(time.Second, loads...), <-backlog
		p.t.Logf("%.1f Mbit/s, %d bytes in the buffer", r, queued)
		if ok(r, queued) {
			return
		}
	}
	p.t.Errorf("in none of %d seconds were shares or queue as required", attempts)
}

const (
	pathRate   = "200mbit"
	pathBuffer = 250_000 // bytes, 10 ms
)

// TestSharesOnSockets checks that connections through a token bucket filter have equal shares, and that
// they keep its buffer less than a third full.
func TestSharesOnSockets(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, flows := range []int{2, 8} {
		t.Run(fmt.Sprint(flows), func(t *testing.T) {
			p := newTBFPath(t, pathRate, pathBuffer, 9000)
			y := portOf(t, p.b, p.to)
			var loads []*load
			for i := range flows {
				p.a.Do(func() {
					x := newEnd(t, Options{Addr: netip.AddrPortFrom(p.from, roceUDPPort+uint16(i))})
					loads = append(loads, startWrites(t, x, y))
				})
			}
			p.measureUntil(20, loads, func(rates []float64, backlog int) bool {
				return jain(rates) > 0.95 && backlog < pathBuffer/3
			})
		})
	}
}

// TestBesideTCP checks that a connection beside a TCP stream that fills the buffer gets between half
// and twice its share.
func TestBesideTCP(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, algorithm := range []string{"cubic", "bbr"} {
		for _, mtu := range []int{1500, 9000} {
			t.Run(fmt.Sprintf("%s mtu %d", algorithm, mtu), func(t *testing.T) {
				p := newTBFPath(t, pathRate, pathBuffer, mtu)
				x, y := portOf(t, p.a, p.from), portOf(t, p.b, p.to)
				loads := []*load{p.startTCP(algorithm), startWrites(t, x, y)}
				p.measureUntil(20, loads, func(rates []float64, _ int) bool {
					return rates[1] > rates[0]/2 && rates[1] < 2*rates[0]
				})
			})
		}
	}
}
