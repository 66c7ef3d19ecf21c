//go:build linux

package uverbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// A device is an open device of the kernel.
type device struct {
	name   string
	file   *commandFile
	system system
	attr   queryDeviceResponse
	gid0   int       // kernel's index of entry 0 of the GID table
	begin  time.Time // zero of QueryClock

	isClosed  atomic.Bool
	closed    chan struct{} // closed by Close
	closeOnce sync.Once
	closeErr  error
	readers   sync.WaitGroup // goroutines that read events
	asyncFile *os.File

	mu          sync.Mutex
	nextHandle  uint64
	objects     map[uint64]object // by the handle that events carry
	regions     map[*memoryRegion]struct{}
	pairs       map[uint32]*queuePair // by number
	channels    []*compChannel        // open ones
	ownMu       sync.Mutex            // guards the creation of own
	own         *compChannel          // of the queues without a channel of the program, or nil
	events      []verbs.AsyncEvent
	eventQueued chan struct{} // capacity 1: events may have entries
}

// An object is a queue pair, completion queue or shared receive queue: events refer to it.
type object interface {
	// handleAsync records an event of the object and returns it.
	handleAsync(kind verbs.EventType) verbs.AsyncEvent

	// discardMemory releases the memory of an object whose device is closed.
	discardMemory()
}

// start opens the context, checks that the device has a provider, and starts to read events.
func (d *device) start(providerABI int, addr netip.Addr) error {
	var context getContextResponse
	if err := execute(d.file, cmdGetContext, &none{}, &context); err != nil {
		return fmt.Errorf("get context: %w", err)
	}
	var err error
	if d.asyncFile, err = openEvents(context.asyncFD, d.name+" events"); err != nil {
		return err
	}
	d.readers.Go(d.readAsyncEvents)
	if err := execute(d.file, cmdQueryDevice, &none{}, &d.attr); err != nil {
		return fmt.Errorf("query device: %w", err)
	}
	if d.attr.vendorID != rxeVendor {
		return fmt.Errorf("%w: vendor %#06x has no provider here, only rxe has; use libibverbs for this device, or create an rxe device on its network interface",
			verbs.ErrUnsupported, d.attr.vendorID)
	}
	if providerABI != rxeABIVersion {
		return fmt.Errorf("%w: ABI version %d of rxe: want %d; this kernel needs another version of this program", verbs.ErrUnsupported, providerABI, rxeABIVersion)
	}
	port, err := d.queryPort(1)
	if err != nil {
		return fmt.Errorf("query port 1: %w", err)
	}
	d.gid0, err = d.system.selectGID(d.name, int(port.gids), addr)
	return err
}

// String returns the name of the device for errors.
func (d *device) String() string { return "device " + d.name }

// Name implements verbs.Device.
func (d *device) Name() string { return d.name }

// QueryDevice implements verbs.Device.
func (d *device) QueryDevice() verbs.DeviceAttr {
	a := &d.attr
	size := func(n uint32) int { return int(min(n, math.MaxInt32)) }
	return verbs.DeviceAttr{
		FWVer:    fmt.Sprintf("%d.%d.%d", a.firmware>>32, a.firmware>>16&0xffff, a.firmware&0xffff),
		NodeGUID: binary.BigEndian.Uint64(a.nodeGUID[:]), SysImageGUID: binary.BigEndian.Uint64(a.systemGUID[:]),
		VendorID: a.vendorID, VendorPartID: a.vendorPart, HWVer: a.hardware,
		MaxMRSize: a.maxMRSize, MaxQP: size(a.maxQP), MaxQPWR: size(a.maxQPWR), MaxSGE: size(a.maxSGE), MaxSGERd: size(a.maxSGERead),
		MaxCQ: size(a.maxCQ), MaxCQE: size(a.maxCQE), MaxMR: size(a.maxMR), MaxMW: size(a.maxMW), MaxPD: size(a.maxPD),
		MaxAH: size(a.maxAH), MaxSRQ: size(a.maxSRQ), MaxSRQWR: size(a.maxSRQWR), MaxSRQSGE: size(a.maxSRQSGE),
		MaxQPRdAtom: size(a.maxQPReads), MaxQPInitRdAtom: size(a.maxQPInitReads), MaxInlineData: rxeMaxInline,
		MaxMcastGrp: size(a.maxMcastGroups), MaxPKeys: int(a.maxPKeys), PhysPortCnt: int(a.ports),
		LocalCAAckDelay: a.ackDelay, AtomicCap: verbs.AtomicCap(a.atomicCap),
	}
}

// queryPort returns the kernel's attributes of a port.
func (d *device) queryPort(port int) (queryPortResponse, error) {
	var r queryPortResponse
	err := execute(d.file, cmdQueryPort, &queryPort{port: uint8(port)}, &r)
	return r, err
}

// checkPort returns an error if the device has no such port or is closed.
func (d *device) checkPort(op string, port int) error {
	if d.isClosed.Load() {
		return closedError(op, d.String())
	}
	if port < 1 || port > int(d.attr.ports) {
		return invalidError(op, d.String(), "port %d: want 1 to %d", port, d.attr.ports)
	}
	return nil
}

// QueryPort implements verbs.Device.
func (d *device) QueryPort(port int) (verbs.PortAttr, error) {
	const op = "query port"
	if err := d.checkPort(op, port); err != nil {
		return verbs.PortAttr{}, err
	}
	a, err := d.queryPort(port)
	if err != nil {
		return verbs.PortAttr{}, opError(op, d.String(), err)
	}
	layers := map[uint8]string{1: "InfiniBand", 2: "Ethernet"} // IBV_LINK_LAYER_*
	return verbs.PortAttr{
		State: verbs.PortState(a.state), MaxMTU: verbs.MTU(a.maxMTU), ActiveMTU: verbs.MTU(a.activeMTU),
		GIDTableLen: int(a.gids), PKeyTableLen: int(a.pkeys), MaxMsgSize: a.maxMessage,
		LID: a.lid, SMLID: a.smLID, LMC: a.lmc, MaxVLNum: a.maxVL,
		ActiveWidth: a.activeWidth, ActiveSpeed: a.activeSpeed, PhysState: a.physState, LinkLayer: layers[a.linkLayer],
		BadPKeyCntr: a.badPKeys, QKeyViolCntr: a.badQKeys, UDPPort: rocePort,
	}, nil
}

// rocePort is the UDP port of RoCE v2. The kernel has no other.
const rocePort = 4791

// QueryGID implements verbs.Device.
func (d *device) QueryGID(port, index int) (verbs.GIDEntry, error) {
	const op = "query GID"
	if err := d.checkPort(op, port); err != nil {
		return verbs.GIDEntry{}, err
	}
	row, err := d.system.readGID(d.name, port, d.kernelGIDIndex(index))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return verbs.GIDEntry{}, invalidError(op, d.String(), "the GID table has no entry %d", index)
		}
		return verbs.GIDEntry{}, opError(op, d.String(), err)
	}
	return verbs.GIDEntry{GID: row.gid, Index: index, Port: port, Type: row.kind}, nil
}

// kernelGIDIndex returns the kernel's index of an entry of the GID table, or the reverse.
func (d *device) kernelGIDIndex(index int) int {
	switch index {
	case 0:
		return d.gid0
	case d.gid0:
		return 0
	}
	return index
}

// QueryClock implements verbs.Device.
func (d *device) QueryClock() int64 { return int64(time.Since(d.begin)) }

// Progress implements verbs.Device. The kernel makes progress.
func (d *device) Progress() int { return 0 }

// addObject registers an object for events and returns its handle, which is never 0. If the device
// is closed, it returns verbs.ErrClosed.
func (d *device) addObject(o object) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.objects == nil {
		return 0, verbs.ErrClosed
	}
	d.nextHandle++
	d.objects[d.nextHandle] = o
	return d.nextHandle, nil
}

// removeObject undoes addObject.
func (d *device) removeObject(handle uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.objects, handle)
}

// keepRegion keeps the memory of a region until dropRegion or Close.
func (d *device) keepRegion(m *memoryRegion) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.regions[m] = struct{}{}
}

// dropRegion undoes keepRegion.
func (d *device) dropRegion(m *memoryRegion) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.regions, m)
}

// noteFailure records that a request of a queue pair has failed, which ends connected ones.
func (d *device) noteFailure(qpn uint32) {
	d.mu.Lock()
	q := d.pairs[qpn]
	d.mu.Unlock()
	if q != nil {
		q.failed.Store(true)
	}
}

// findObject returns a registered object, or nil.
func (d *device) findObject(handle uint64) object {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.objects[handle]
}

// Close implements verbs.Device. The kernel destroys all objects with the file.
func (d *device) Close() error {
	d.closeOnce.Do(func() { d.closeErr = opError("close", d.String(), d.closeAll()) })
	return d.closeErr
}

func (d *device) closeAll() error {
	d.isClosed.Store(true)
	close(d.closed)
	d.mu.Lock()
	objects, channels := d.objects, d.channels
	d.objects, d.channels = nil, nil
	d.mu.Unlock()
	var errs []error
	for _, c := range channels {
		errs = append(errs, c.file.Close())
	}
	if d.asyncFile != nil {
		errs = append(errs, d.asyncFile.Close())
	}
	d.readers.Wait()
	for _, o := range objects {
		o.discardMemory()
	}
	errs = append(errs, d.file.Close())
	d.mu.Lock()
	clear(d.regions) // the kernel has deregistered them
	d.mu.Unlock()
	return errors.Join(errs...)
}
