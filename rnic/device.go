package rnic

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/broker"
	"github.com/softrnic/softrnic/internal/ifwatch"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/capture"
	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// Device is an open adapter. It implements verbs.Device.
type Device struct {
	options Options
	name    string
	addr    netip.AddrPort
	caps    link.Caps
	guid    uint64
	attr    verbs.DeviceAttr
	log     *slog.Logger
	deviceSources
	deviceLife

	shards []*shard
	deviceObjects
	deviceNetwork
	deviceReports
}

// The deviceSources are the clock and the random numbers of a device.
type deviceSources struct {
	clock    func() int64
	rand     func() uint32
	randLock sync.Mutex
}

// The deviceObjects are the objects that programs create on a device.
type deviceObjects struct {
	qps             *qpTable
	keys            *keyTable
	quota           *quotas
	nextShard       atomic.Uint32 // shard of the next queue pair
	lastCQ          atomic.Uint32 // number of the last completion queue
	lastChannel     atomic.Uint32 // number of the last completion channel
	mu              sync.Mutex
	cqs             map[*completionQueue]struct{}
	handledChannels atomic.Pointer[[]*completionChannel] // channels with a handler; replaced with mu held
}

// A deviceNetwork is the state of the network around a device.
type deviceNetwork struct {
	port   port
	groups groupTable
	paths  pathCache
	member *broker.Member // slot of a shared address, or nil

	ownPath wire.Path // to the other devices at a shared address

	connector *streamConnector // of TCP connections; nil with RoCE v2
}

// The deviceReports are the events, counters and captures of a device, and its debug
// interface.
type deviceReports struct {
	events        *eventQueue
	drops         dropCounters
	linkFailures  atomic.Uint64 // times the link failed
	wakeups       atomic.Uint64 // number of possible wake-ups of goroutines
	memoryWaiters memoryWaiters
	retired       retiredCounters
	layers        layers
	waitWatch     atomic.Bool // the timer of checkWaiters runs
	logs          deferredLogs
	capture       *capture.File // the running capture, or nil
	debug         debugEndpoint
}

var (
	_ verbs.Device = (*Device)(nil)
	_ pdHost       = (*Device)(nil)
)

var deviceNumber atomic.Uint32

// Open opens a device on a UDP socket. Unless Options.NoService is set, it raises
// GOMAXPROCS from 1 to 2, so that other goroutines run while one blocks in the
// socket. Set GOMAXPROCS in the environment to keep it.
func Open(o Options) (*Device, error) {
	if err := o.applyEnvironment(); err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	conns, member, err := o.openSockets()
	if err != nil {
		return nil, err
	}
	d := newDevice(o, conns, member)
	if tcp, ok := conns[0].(*link.TCP); ok {
		d.connector = newStreamConnector(d)
		d.connector.startAccepting(tcp)
	}
	if err := d.wrapLinks(); err != nil {
		closeLinks(conns, member)
		heldAddrs.CompareAndDelete(d.addr, d.name)
		return nil, &verbs.OpError{Op: "open device", Object: d.addr.String(), Err: err}
	}
	if !o.NoService {
		raiseGOMAXPROCS(d.log)
		for _, s := range d.shards {
			go s.runMonitor()
			go s.runService()
		}
	}
	d.watchPort()
	if err := d.openDebug(); err != nil {
		d.Close()
		return nil, err
	}
	d.log.Info("device open", "device", d.name, "addr", d.addr, "link", d.caps.Name, "mtu", d.activeMTU().Bytes(), "debug", d.DebugAddr())
	return d, nil
}

func newDevice(o Options, conns []link.Conn, member *broker.Member) *Device {
	d := &Device{
		options: o, name: o.Name, log: o.Logger, addr: conns[0].LocalAddr(), caps: conns[0].Caps(),
		deviceSources: deviceSources{clock: o.hooks.Clock, rand: o.hooks.Rand},
		deviceLife:    deviceLife{ended: make(chan struct{})},
		deviceObjects: deviceObjects{cqs: make(map[*completionQueue]struct{})},
		deviceNetwork: deviceNetwork{member: member, ownPath: wire.Path{Dst: conns[0].LocalAddr()}},
		deviceReports: deviceReports{events: newEventQueue()},
	}
	d.addr = d.caps.BoundAddr(d.addr)
	d.qps = newQPTable(d.qpnRange())
	if d.name == "" {
		d.name = fmt.Sprintf("softrnic%d", deviceNumber.Add(1)-1)
	}
	if d.clock == nil {
		d.clock = monotonicNow
	}
	if d.rand == nil {
		d.rand = secureRandom
	}
	d.keys = newKeyTable(d.random)
	slot := 0
	if member != nil {
		slot = member.Slot()
	}
	d.guid = nodeGUID(d.addr, slot)
	d.attr = d.deviceAttr()
	if member != nil {
		d.attr.MaxQP = min(maxQP, d.qps.maxQPs())
	}
	d.quota = newQuotas(d.attr)
	linkKnown := o.hooks.Conn == nil && d.caps.Index != 0
	d.port.state.Store(&ifwatch.State{HasAddr: true, Up: !linkKnown || d.caps.Up, MTU: d.caps.MTU})
	if o.hooks.Conn == nil {
		heldAddrs.Store(d.addr, d.name)
	}
	for _, c := range conns {
		d.shards = append(d.shards, newShard(d, c))
	}
	return d
}

// wrapLinks applies the options of fault injection and capture.
func (d *Device) wrapLinks() error {
	if err := d.SetImpair(d.options.Impair); err != nil {
		return err
	}
	if d.options.Capture == "" {
		return nil
	}
	return d.StartCapture(d.options.Capture)
}

// mtuOfInterface returns the largest RoCE MTU that fits an interface. An
// interface of unknown MTU is taken for a loopback.
func mtuOfInterface(interfaceMTU int, a netip.Addr) verbs.MTU {
	if interfaceMTU == 0 {
		return verbs.MTU4096
	}
	return max(verbs.MTU256, mtuOfBytes(wire.PathMTU(interfaceMTU, !a.Unmap().Is4())))
}

// mtuOfBytes returns the MTU of a number of bytes, or 0 if there is none.
func mtuOfBytes(bytes int) verbs.MTU {
	for m := verbs.MTU256; m <= verbs.MTU4096; m++ {
		if m.Bytes() == bytes {
			return m
		}
	}
	return 0
}

// now returns the time on the device's clock.
func (d *Device) now() reliability.Time { return reliability.Time(d.clock()) }

// QueryClock implements verbs.Device. It works on a closed device as well.
func (d *Device) QueryClock() int64 { return d.clock() }

// random returns a number from the device's random source.
func (d *Device) random() uint32 {
	d.randLock.Lock()
	defer d.randLock.Unlock()
	return d.rand()
}

// Name implements verbs.Device.
func (d *Device) Name() string { return d.name }

// Addr returns the address and port that the device is bound to. An IPv6
// link-local address has its interface as zone, so that another device can be
// opened there; the GID, which peers see, has none.
func (d *Device) Addr() netip.AddrPort { return d.addr }

// QueryDevice implements verbs.Device.
func (d *Device) QueryDevice() verbs.DeviceAttr { return d.attr }

// QueryPort implements verbs.Device.
func (d *Device) QueryPort(port int) (verbs.PortAttr, error) {
	if port != 1 {
		return verbs.PortAttr{}, &verbs.OpError{Op: "query port", Object: d.name, Err: verbs.ErrInvalid,
			Detail: fmt.Sprintf("port %d does not exist; the adapter has port 1", port)}
	}
	state, phys := d.portState()
	return verbs.PortAttr{
		State: state, MaxMTU: verbs.MTU4096, ActiveMTU: d.activeMTU(), GIDTableLen: gidTableLen, PKeyTableLen: pkeyTableLen,
		MaxMsgSize: maxMessage, MaxVLNum: 1, ActiveWidth: 2, ActiveSpeed: 32, PhysState: phys, LinkLayer: "Ethernet",
		QKeyViolCntr: uint32(d.drops.n[wire.DropBadQKey].Load()), BadPKeyCntr: uint32(d.drops.n[wire.DropBadPKey].Load()),
		UDPPort: d.addr.Port(), RecvBuffer: uint32(max(0, d.caps.RecvBuffer)), Selective: !d.options.NoSelective && !d.isStream(),
	}, nil
}

// QueryGID implements verbs.Device.
func (d *Device) QueryGID(port, index int) (verbs.GIDEntry, error) {
	if port != 1 || index < 0 || index >= gidTableLen {
		return verbs.GIDEntry{}, &verbs.OpError{Op: "query GID", Object: d.name, Err: verbs.ErrInvalid,
			Detail: fmt.Sprintf("port %d, index %d: want port 1, index 0", port, index)}
	}
	return verbs.GIDEntry{GID: verbs.GIDFromAddr(d.addr.Addr()), Port: 1, Type: verbs.GIDRoCEv2}, nil
}

// AllocPD implements verbs.Device.
func (d *Device) AllocPD() (verbs.PD, error) {
	const op = "allocate PD"
	if err := d.checkUsable(op); err != nil {
		return nil, err
	}
	if err := d.quota.reserve(kindPD, op); err != nil {
		return nil, err
	}
	return newPD(d), nil
}

// AsyncEvent implements verbs.Device.
func (d *Device) AsyncEvent(ctx context.Context) (verbs.AsyncEvent, error) {
	return d.events.waitNext(ctx)
}

// Progress implements verbs.Device.
func (d *Device) Progress() int {
	n := 0
	for _, s := range d.shards {
		n += d.pollShard(s, caller{memory: true})
	}
	return n
}

// The following methods implement pdHost.

func (d *Device) keyTable() *keyTable       { return d.keys }
func (d *Device) quotas() *quotas           { return d.quota }
func (d *Device) shardCount() int           { return len(d.shards) }
func (d *Device) isClosed() bool            { return d.closed.Load() }
func (d *Device) pdFreed(*protectionDomain) { d.quota.release(kindPD) }

// raiseEvent queues an asynchronous event. Locks may be held: the caller, or the
// goroutine that releases the lock of the shard, calls emitLogs.
func (d *Device) raiseEvent(ev verbs.AsyncEvent) {
	d.deferLog(func(log *slog.Logger) {
		if log.Enabled(context.Background(), slog.LevelDebug) {
			cause := ""
			if ev.Failure != nil {
				cause = ev.Failure.String()
			}
			log.Debug("asynchronous event", "device", d.name, "event", ev.Type, "cause", cause)
		}
	})
	d.wakeups.Add(1)
	d.events.push(ev)
}

// processStart is the zero of the monotonic clock.
var processStart = time.Now()

// monotonicNow returns the nanoseconds since the process started, never 0.
func monotonicNow() int64 { return int64(time.Since(processStart)) + 1 }

// secureRandom returns 32 unpredictable bits.
func secureRandom() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.NativeEndian.Uint32(b[:])
}
