package cluster

import (
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// An adapter is the device of a host and the model of the time that it takes: a link.Conn on the
// network, and its memory.Timing.
type adapter struct {
	*memory.Conn
	host   *Host
	device *rnic.Device
	costs  *Costs

	sendFree, receiveFree int64 // times at which the adapter has sent, and received, all packets
	stall                 int64 // nanoseconds to fetch the context of the next packet to send
}

var _ memory.Timing = (*adapter)(nil)

// OpenDevice opens the adapter of the host.
func (h *Host) OpenDevice() (verbs.Device, error) {
	c := h.cluster
	a := &adapter{host: h, costs: &c.options.Costs}
	n := h.number + 1
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), link.RoCEPort)
	var err error
	o := memory.Options{Delay: a.costs.Latency, MTU: a.costs.MTU, Timing: a, NoGSO: !a.costs.Software, NoGRO: !a.costs.Software}
	if a.Conn, err = c.net.Attach(addr, o); err != nil {
		return nil, err
	}
	hooks := rnichook.Hooks{Conn: a, Clock: h.Now, Stall: a.fetchContext}
	if h.processor.isShared {
		hooks.BeforePoll, hooks.Yield = h.waitForProcessor, h.yieldProcessor
	} else {
		hooks.Batch, hooks.Datagrams = c.batch, c.datagrams
	}
	random := rand.New(rand.NewPCG(c.options.Seed, uint64(n)))
	hooks.Rand = random.Uint32
	a.device, err = rnic.Open(rnichook.WithHooks(rnic.Options{
		Name: addr.Addr().String(), NoService: true, Spin: c.options.Spin, Logger: slog.New(slog.DiscardHandler), Debug: rnic.DebugOff,
		ICM: rnic.ICM{Entries: a.costs.Contexts, MissPenalty: a.costs.ContextMiss},
	}, hooks))
	if err != nil {
		return nil, err
	}
	h.adapter = a
	return a.device, nil
}

// pollOnce polls the device once and returns the number of packets that it has handled.
func (a *adapter) pollOnce() int { return a.device.Progress() }

// pollUntilIdle polls the device until it has sent its acknowledgements.
func (a *adapter) pollUntilIdle() {
	for a.pollOnce() > 0 {
	}
}

// nextTimer returns when the device has work although no packet arrives, or 0 for never.
func (a *adapter) nextTimer() int64 { return rnichook.NextTimer(a.device) }

// hasWork reports whether the device has work now.
func (a *adapter) hasWork(now int64) bool {
	t := a.nextTimer()
	return a.Readable() || t != 0 && t <= now
}

// OnQueued implements memory.Timing.
func (a *adapter) OnQueued() { a.host.cluster.scheduleHost(a.host, a.host.cluster.net.Now()) }

// fetchContext is called by the device when a queue pair's context is not in its cache.
func (a *adapter) fetchContext(ns int64) {
	if a.host.active != nil { // a post
		a.stall += ns
		return
	}
	now := a.host.cluster.net.Now()
	a.receiveFree = max(a.receiveFree, now) + ns
	a.host.processor.freeAt = max(a.host.processor.freeAt, a.receiveFree) // it learns of the packet then
}

// DepartAt implements memory.Timing.
func (a *adapter) DepartAt(_ *wire.Path, buf []byte, seg int) int64 {
	c, packets := a.costs, (len(buf)+seg-1)/seg
	for off := 0; a.host.active != nil && off < len(buf); off += seg {
		pkt := buf[off:min(off+seg, len(buf))]
		info := wire.Opcode(pkt[0]).Info()
		if !info.Request || !info.First {
			continue
		}
		ns := int64(c.Post)
		if info.Operation == wire.OpSend {
			ns += int64(c.Match) + int64(c.CopyByte*float64(len(pkt)))
		}
		a.host.addWork(ns)
	}
	if c.Software {
		a.host.addWork(int64(packets)*int64(c.SendPacket) + int64(c.PacketByte*float64(len(buf))))
	}
	begin := max(a.host.Now(), a.sendFree)
	if c.Software {
		begin = max(begin, a.host.processor.freeAt)
	}
	a.sendFree = begin + a.stall + int64(packets)*int64(c.Gap) + int64(c.ByteTime*float64(len(buf)))
	a.stall = 0
	return a.sendFree
}

// ArriveAt implements memory.Timing.
func (a *adapter) ArriveAt(buf []byte, seg int) int64 {
	packets := (len(buf) + seg - 1) / seg
	begin := max(a.host.cluster.net.Now(), a.receiveFree)
	a.receiveFree = begin + int64(packets)*int64(a.costs.Gap) + int64(a.costs.ByteTime*float64(len(buf)))
	return a.receiveFree
}

// Close implements link.Conn. The device, which Device.Close closes, has no more timers.
func (a *adapter) Close() error {
	a.host.adapter = nil
	return a.Conn.Close()
}

// WriteBatch implements link.Conn.
func (a *adapter) WriteBatch(b *link.Batch) error {
	if a.costs.Software {
		a.host.addWork(int64(a.costs.Call))
	}
	return a.Conn.WriteBatch(b)
}

// ReadBatch implements link.Conn.
func (a *adapter) ReadBatch(r *link.Datagrams) (int, error) {
	n, err := a.Conn.ReadBatch(r)
	c, ns := a.costs, int64(0)
	for i := range r.Msgs() {
		d := &r.Msgs()[i]
		for p := range d.Count() {
			pkt := d.Packet(p)
			info := wire.Opcode(pkt[0]).Info()
			if info.Last && info.ConsumesRecv {
				ns += int64(c.Complete)
			}
			if info.Operation == wire.OpSend {
				ns += int64(c.CopyByte * float64(len(pkt)))
				if info.Last {
					ns += int64(c.Match)
				}
			}
			if c.Software {
				ns += int64(c.ReceivePacket) + int64(c.PacketByte*float64(len(pkt)))
			}
		}
	}
	switch {
	case n > 0 && c.Software:
		ns += int64(c.Call)
	case n == 0 && a.host.processor.isShared:
		ns = max(1, int64(c.Poll)) // so that time passes for a host that polls
	}
	if ns > 0 {
		a.host.addWork(ns)
	}
	return n, err
}

// Wait implements link.Conn. Where the host shares its processor the calling goroutine sleeps until
// there is a datagram, the timeout has passed or another goroutine of the host has run.
func (a *adapter) Wait(timeout time.Duration) (bool, error) {
	if a.host.processor.isShared && a.host.active != nil {
		a.host.sleepUntil(a.Readable, timeout)
	}
	return a.Conn.Wait(timeout)
}
