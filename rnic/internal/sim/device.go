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
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// DeviceOptions configure an adapter. The zero value has defaults for all
// fields.
type DeviceOptions struct {
	Name   string         // "d0", "d1" and so on by default
	Addr   netip.AddrPort // 10.0.0.1:4791, 10.0.0.2:4791 and so on by default
	Link   memory.Options // network port
	Impair string         // injected faults, see link/impair

	Congestion string // congestion control, see rnic.Options

	// OneByOne makes the adapter read single packets instead of batches, so that
	// a trace can record the verdict on each.
	OneByOne bool
}

// A Device is an adapter of a simulation. Its rnic.Device is used as any other;
// only the blocking calls Wait and PollWait cannot be used.
type Device struct {
	*rnic.Device

	// App, if set, is the application, which polls and posts. It is called when
	// the adapter has handled packets or timers, and at the start of Run.
	App func()

	// OnSend, if set, is called with every packet that the adapter sends, BTH to
	// ICRC, which is not yet valid. It must not keep the bytes.
	OnSend func(to *wire.Path, pkt []byte)

	// Sent and Received count the packets that the adapter passed to its link
	// and read from it.
	Sent, Received Tally

	sim          *Sim
	index        int
	port         *memory.Conn
	impair       *impair.Conn
	top          *topTap
	delay        time.Duration // to here on the network
	wakePending  bool          // run the adapter although no packet arrived
	stoppedUntil int64         // end of StopFor, or 0
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
	d.Device, err = rnic.Open(rnichook.WithHooks(rnic.Options{
		Name: o.Name, NoService: true, Congestion: o.Congestion,
		Logger: slog.New(slog.DiscardHandler), Debug: rnic.DebugOff, // tests inspect the simulation itself
	}, rnichook.Hooks{Conn: d.top, Clock: s.net.Now, Rand: random.Uint32}))
	if err != nil {
		return nil, err
	}
	s.devices = append(s.devices, d)
	return d, nil
}

// SetImpair changes the faults of the adapter's link. A text without a seed
// gets one derived from the simulation's.
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

// ImpairCounts returns the counters of the injected faults.
func (d *Device) ImpairCounts() impair.Counts { return d.impair.Counts() }

// Port returns the adapter's port on the network: packets written there are
// sent with the adapter's address, without the adapter.
func (d *Device) Port() *memory.Conn { return d.port }

// AddressVector returns the address vector of the adapter.
func (d *Device) AddressVector() verbs.AHAttr {
	return verbs.AHAttr{DGID: verbs.GIDFromAddr(d.Addr().Addr()), UDPPort: d.Addr().Port()}
}

// ScheduleAt makes f, a part of the adapter's application, be called when the
// clock reaches t; then the adapter runs.
func (d *Device) ScheduleAt(t time.Duration, f func()) {
	d.sim.net.ScheduleAt(int64(t)+epoch, func() {
		f()
		d.wakePending = true
	})
}

// StopFor stops the host of the adapter for the given time, like SIGSTOP:
// neither adapter nor application runs, and packets are queued in its port.
func (d *Device) StopFor(t time.Duration) {
	d.stoppedUntil = max(d.stoppedUntil, d.sim.net.Now()+int64(t))
	d.sim.net.ScheduleAt(d.stoppedUntil, func() { d.wakePending = true })
}

// isRunning reports whether the host runs at the given time.
func (d *Device) isRunning(now int64) bool { return d.stoppedUntil <= now }

// nextEvent returns when the adapter has work without a packet, or 0.
func (d *Device) nextEvent() int64 {
	if !d.isRunning(d.sim.net.Now()) {
		return d.stoppedUntil
	}
	t := rnichook.NextTimer(d.Device)
	if due := d.impair.NextDue(); due != 0 && (t == 0 || due < t) {
		t = due
	}
	return t
}

// hasWork reports whether the adapter has work now.
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

// runUntilIdle runs adapter and application until they have no work.
func (d *Device) runUntilIdle() {
	d.wakePending = false
	d.pollUntilIdle()
	if d.App != nil {
		d.App()
		d.pollUntilIdle()
	}
}

// idlePolls is the number of empty polls after which an adapter that has read
// packets is idle: in a stream it defers an acknowledgement for some polls.
const idlePolls = 8

// pollUntilIdle polls until the adapter is idle.
func (d *Device) pollUntilIdle() {
	looks := 1
	for idle := 0; idle < looks; idle++ {
		if d.pollOnce() > 0 {
			idle, looks = -1, idlePolls
		}
	}
}

// pollOnce polls the adapter once, and records its verdicts if packets are
// recorded.
func (d *Device) pollOnce() int {
	n := d.Progress()
	d.top.recordVerdicts()
	return n
}

// Events returns the queued asynchronous events.
func (d *Device) Events() []verbs.AsyncEvent {
	var events []verbs.AsyncEvent
	for {
		ev, err := d.AsyncEvent(ended)
		if err != nil {
			return events
		}
		events = append(events, ev)
	}
}

// ended is a context for calls that must not block.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
