package link

import (
	"errors"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/wire"
)

// A ProbeResult is the result of Probe.
type ProbeResult struct {
	// Err says why no link could be tried at all; the rest is then unknown.
	Err error

	// Accelerations that worked on the loopback interface: a group of packets
	// left in one send (GSO), arrived in one buffer (GRO), and several groups
	// took one system call (MMsg).
	GSO, GRO, MMsg bool

	// The buffers in bytes of a socket that requests DefaultRecvBuffer and
	// DefaultSendBuffer; 0 if the system does not report them.
	RecvBuffer, SendBuffer int

	// The limits for unprivileged processes, net.core.rmem_max and wmem_max,
	// bytes; 0 when unknown. A socket that got more was privileged.
	RecvBufferMax, SendBufferMax int

	// Name of the link that OpenUDP chooses here: "udp-linux", "udp-portable".
	Name string

	// RoCEPort is nil if UDP port 4791 of 127.0.0.1 can be bound, or says why
	// not.
	RoCEPort error
}

// Probe tests which features this system offers to a link. It takes
// milliseconds, opens sockets on 127.0.0.1, and ignores the environment.
func Probe() ProbeResult {
	p := ProbeResult{
		RecvBufferMax: readSysctl("rmem_max"),
		SendBufferMax: readSysctl("wmem_max"),
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	p.Err = p.testTransfer(Options{Addr: netip.AddrPortFrom(loopback, 0)}.withDefaults())
	if c, err := openFast(Options{Addr: netip.AddrPortFrom(loopback, RoCEPort)}.withDefaults()); err != nil {
		p.RoCEPort = err
	} else {
		c.Close()
	}
	return p
}

// testTransfer sends two groups of two packets between two links and records
// how they were carried.
func (p *ProbeResult) testTransfer(o Options) error {
	tx, err := openFast(o)
	if err != nil {
		return err
	}
	defer tx.Close()
	rx, err := openFast(o)
	if err != nil {
		return err
	}
	defer rx.Close()

	const small, large, packets = 64, 128, 4
	b, to := NewBatch(packets*large), &wire.Path{Dst: rx.LocalAddr()}
	for _, n := range [packets]int{small, small, large, large} {
		clear(b.Next(to, n))
	}
	if err := tx.WriteBatch(b); err != nil {
		return err
	}
	r := NewDatagrams(packets)
	for got := 0; got < packets; {
		readable, err := rx.Wait(time.Second)
		if err != nil {
			return err
		}
		if !readable {
			return errors.New("link: datagrams to 127.0.0.1 do not arrive; look for a firewall rule on the loopback interface")
		}
		if _, err := rx.ReadBatch(r); err != nil {
			return err
		}
		for _, d := range r.Msgs() {
			got += d.Count()
			p.GRO = p.GRO || d.Count() > 1
		}
	}
	caps := rx.Caps()
	p.Name, p.RecvBuffer, p.SendBuffer = caps.Name, caps.RecvBuffer, caps.SendBuffer
	p.GSO = tx.Caps().GSO
	p.MMsg = tx.Caps().MMsg && StatsOf(tx).SendCalls == 1
	return nil
}

// readSysctl reads a limit of net.core, 0 if it does not exist.
func readSysctl(name string) int {
	text, err := os.ReadFile("/proc/sys/net/core/" + name)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}
