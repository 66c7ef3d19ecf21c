package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// DeviceOptions describe an adapter. The zero value is good.
type DeviceOptions struct {
	Name   string         // "d0", "d1" and so on by default
	Addr   netip.AddrPort // 10.0.0.1:4791, 10.0.0.2:4791 and so on by default
	Link   memory.Options // the port it is attached to
	Impair string         // what goes wrong on the way out and in, see link/impair

	// OneByOne hands the adapter single packets, where it would read many at
	// once. A trace can tell better then what became of each.
	OneByOne bool
}

// Device is an adapter of a simulation. Its rnic.Device is used as any other
// one; only Wait and PollWait, which block, are of no use.
type Device struct {
	*rnic.Device

	// App, if set, is the application: it is called whenever the adapter has
	// handled packets or timers, and at the start of Run. It polls and posts.
	App func()

	// OnSend, if set, sees every packet that the adapter hands to its link,
	// BTH to ICRC; the latter is not yet right. The bytes are the adapter's.
	OnSend func(to *wire.Path, pkt []byte)

	// Sent and Received count what the adapter really handed to its link and
	// got from it.
	Sent, Received Tally

	sim          *Sim
	index        int
	port         *memory.Conn
	impair       *impair.Conn
	top          *topTap
	delay        time.Duration // to here on the network
	wakePending  bool          // work has to look, although nothing came
	stoppedUntil int64         // until when the host does not run; 0: it does
}

// AddDevice opens an adapter on the network.
func (s *Sim) AddDevice(o DeviceOptions) (*Device, error) {
	d := &Device{sim: s, index: len(s.devices), delay: o.Link.Delay}
	if d.delay == 0 {
		d.delay = memory.DefaultDelay
	}
	if o.Name == "" {
		o.Name = fmt.Sprintf("d%d", d.index)
	}
	if !o.Addr.IsValid() {
		n := d.index + 1
		o.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), link.RoCEPort)
	}
	var err error
	if d.port, err = s.net.Attach(o.Addr, o.Link); err != nil {
		return nil, err
	}
	if d.impair, err = impair.New(&bottomTap{Conn: d.port, dev: d}, impair.Spec{}, s.net.Now); err != nil {
		return nil, err
	}
	if err = d.SetImpair(o.Impair); err != nil {
		return nil, err
	}
	d.top = &topTap{Conn: d.impair, dev: d, single: o.OneByOne}
	random := rand.New(rand.NewPCG(s.seed, uint64(d.index+1)))
	d.Device, err = rnic.Open(rnic.Options{
		Name: o.Name, NoService: true, Conn: d.top, Clock: s.net.Now, Rand: random.Uint32,
		Logger: slog.New(slog.DiscardHandler), Debug: rnic.DebugOff, // one looks into the simulation itself
	})
	if err != nil {
		return nil, err
	}
	s.devices = append(s.devices, d)
	return d, nil
}

// SetImpair changes what goes wrong on the adapter's link. A text without a
// seed gets one made of the simulation's.
func (d *Device) SetImpair(text string) error {
	spec, err := impair.Parse(text)
	if err != nil {
		return err
	}
	if spec.Seed == 0 {
		spec.Seed = d.sim.seed + 1
	}
	return d.impair.SetSpec(spec)
}

// ImpairCounts tells what has been done to the adapter's packets.
func (d *Device) ImpairCounts() impair.Counts { return d.impair.Counts() }

// Port is the adapter's port on the network: what is written there leaves
// under the adapter's address without its doing.
func (d *Device) Port() *memory.Conn { return d.port }

// AddressVector is the address vector that leads to the adapter.
func (d *Device) AddressVector() verbs.AHAttr {
	return verbs.AHAttr{DGID: verbs.GIDFromAddr(d.Addr().Addr()), UDPPort: d.Addr().Port()}
}

// ScheduleAt has f, a part of the adapter's application, called when the clock reaches
// t; then the adapter works.
func (d *Device) ScheduleAt(t time.Duration, f func()) {
	d.sim.net.ScheduleAt(int64(t)+epoch, func() {
		f()
		d.wakePending = true
	})
}

// StopFor stops the host of the adapter, as SIGSTOP or a scheduler does that gives it no
// processor: for the given time neither adapter nor application runs. Packets wait in its port.
func (d *Device) StopFor(t time.Duration) {
	d.stoppedUntil = max(d.stoppedUntil, d.sim.net.Now()+int64(t))
	d.sim.net.ScheduleAt(d.stoppedUntil, func() { d.wakePending = true })
}

// isRunning reports whether the host runs at a time.
func (d *Device) isRunning(now int64) bool { return d.stoppedUntil <= now }

// nextEvent is when the adapter has something to do by itself, or 0.
func (d *Device) nextEvent() int64 {
	if !d.isRunning(d.sim.net.Now()) {
		return d.stoppedUntil
	}
	t := d.NextTimer()
	if due := d.impair.NextDue(); due != 0 && (t == 0 || due < t) {
		t = due
	}
	return t
}

// hasWork reports whether the adapter has something to do now.
func (d *Device) hasWork(now int64) bool {
	if !d.isRunning(now) {
		return false
	}
	if d.wakePending || d.top.hasPending() || d.port.Readable() {
		return true
	}
	t := d.nextEvent()
	return t != 0 && t <= now
}

// runUntilIdle runs adapter and application until they have nothing more to do.
func (d *Device) runUntilIdle() {
	d.wakePending = false
	d.pollUntilIdle()
	if d.App != nil {
		d.App()
		d.pollUntilIdle()
	}
}

// idlePolls is how many looks at the link find nothing before an adapter that
// has read packets is taken to be done: in a stream it keeps an acknowledgement
// back for some.
const idlePolls = 8

// pollUntilIdle lets the adapter work until it is done.
func (d *Device) pollUntilIdle() {
	looks := 1
	for idle := 0; idle < looks; idle++ {
		if d.pollOnce() > 0 {
			idle, looks = -1, idlePolls
		}
	}
}

// pollOnce lets the adapter take one look and notes what it made of the
// packet, if packets are recorded.
func (d *Device) pollOnce() int {
	n := d.Progress()
	d.top.recordVerdicts()
	return n
}

// Events returns the asynchronous events that wait.
func (d *Device) Events() []verbs.AsyncEvent {
	var events []verbs.AsyncEvent
	for {
		ev, err := d.GetAsyncEvent(ended)
		if err != nil {
			return events
		}
		events = append(events, ev)
	}
}

// ended is a context for calls that shall not wait.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
