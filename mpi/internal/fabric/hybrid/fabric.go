package hybrid

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/internal/fabric/ud"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Options say how ranks talk.
type Options struct {
	Limit int          // how many ranks each is connected with at most
	RDMA  rdma.Options // with these; nothing is polled, so Fast does not count
	UD    ud.Options   // with the others
}

// Fabric carries packets in both ways.
type Fabric struct {
	rank, size, limit int

	cq  verbs.CQ
	rc  *rdma.Fabric
	ud  *ud.Fabric
	qpn uint32 // of datagrams

	wcs     [64]verbs.WC
	ready   int // completions of wcs that Block has found
	blocked atomic.Bool
	mine    [64]verbs.WC // of look

	// Completions, sorted.
	ofRC, ofUD []verbs.WC
}

var _ fabric.Fabric = (*Fabric)(nil)

// New makes the fabric of a rank on a device, which it does not close. The
// addresses are in the book once all ranks have called Book.Fence.
func New(dev verbs.Device, host fabric.Host, book fabric.Book, o Options) (*Fabric, error) {
	f := &Fabric{rank: book.Rank(), size: book.Size(), limit: o.Limit}
	var err error
	o.UD.Look = f.look
	if f.ud, err = ud.New(dev, host, book, o.UD); err != nil {
		return nil, err
	}
	f.cq, f.qpn = f.ud.Queue()
	o.RDMA.Queue = &fabric.Queue{CQ: f.cq, Others: f.cq.Depth()}
	if f.rc, err = rdma.New(dev, host, book, o.RDMA); err != nil {
		return nil, errors.Join(err, f.ud.Close(context.Background()))
	}
	return f, nil
}

// Connected reports whether two ranks of a job of so many talk by a connection.
func Connected(a, b, size, limit int) bool { return (a+b)%size < limit }

// way is how a rank is reached.
func (f *Fabric) way(rank int) fabric.Fabric {
	if Connected(f.rank, rank, f.size, f.limit) {
		return f.rc
	}
	return f.ud
}

// Limits implements protocol.Net.
func (f *Fabric) Limits(rank int) protocol.Limits { return f.way(rank).Limits(rank) }

// Send implements protocol.Net.
func (f *Fabric) Send(rank int, h *envelope.Header, payload []byte) bool {
	return f.way(rank).Send(rank, h, payload)
}

// RegisterMemory implements protocol.Net.
func (f *Fabric) RegisterMemory(rank int, b []byte, write bool) (envelope.Key, protocol.Registration, error) {
	return f.way(rank).RegisterMemory(rank, b, write)
}

// DeregisterMemory implements protocol.Net: nothing is exposed but by connections.
func (f *Fabric) DeregisterMemory(e protocol.Registration) { f.rc.DeregisterMemory(e) }

// RDMARead implements protocol.Net.
func (f *Fabric) RDMARead(rank int, b []byte, key envelope.Key, move uint64) error {
	return f.way(rank).RDMARead(rank, b, key, move)
}

// RDMAWrite implements protocol.Net.
func (f *Fabric) RDMAWrite(rank int, b []byte, key envelope.Key, move uint64) error {
	return f.way(rank).RDMAWrite(rank, b, key, move)
}

// Poll implements fabric.Fabric.
func (f *Fabric) Poll() (some bool) {
	f.Flush()
	for {
		n := f.ready
		f.ready = 0
		if n == 0 {
			n = f.poll(f.wcs[:])
		}
		f.complete(f.wcs[:n])
		some = some || n > 0
		if n < len(f.wcs) {
			return some
		}
	}
}

// Flush implements fabric.Fabric.
func (f *Fabric) Flush() {
	f.rc.Flush()
	f.ud.Flush()
}

// Block implements fabric.Fabric.
func (f *Fabric) Block(ctx context.Context) error {
	f.blocked.Store(true)
	defer f.blocked.Store(false)
	n, err := f.cq.PollWait(ctx, f.wcs[:])
	f.ready = n
	if n > 0 || errors.Is(err, verbs.ErrCQOverrun) {
		return nil
	}
	return err
}

// look is ud.Options.Look. If somebody is in Block, he handles what comes.
func (f *Fabric) look() {
	for n := len(f.mine); n == len(f.mine) && !f.blocked.Load(); {
		n = f.poll(f.mine[:])
		f.complete(f.mine[:n])
	}
}

func (f *Fabric) poll(wcs []verbs.WC) int {
	n, err := f.cq.Poll(wcs)
	if err != nil {
		f.rc.Fail(err)
		f.ud.Fail(err)
	}
	return n
}

// complete hands completions to whose they are.
func (f *Fabric) complete(wcs []verbs.WC) {
	f.ofRC, f.ofUD = f.ofRC[:0], f.ofUD[:0]
	for _, wc := range wcs {
		if wc.QPN == f.qpn {
			f.ofUD = append(f.ofUD, wc)
		} else {
			f.ofRC = append(f.ofRC, wc)
		}
	}
	if len(f.ofRC) > 0 {
		f.rc.Complete(f.ofRC)
	}
	if len(f.ofUD) > 0 {
		f.ud.Complete(f.ofUD)
	}
}

// ConnectAll implements fabric.Fabric.
func (f *Fabric) ConnectAll(ctx context.Context) error {
	for i := 1; i < f.size; i++ {
		if rank := (f.rank + f.size - i) % f.size; f.way(rank) == fabric.Fabric(f.rc) {
			f.rc.Connect(rank)
		}
	}
	return f.ud.ConnectAll(ctx)
}

// Cut implements fabric.Fabric.
func (f *Fabric) Cut(rank int, why error) { f.way(rank).Cut(rank, why) }

// Stats implements fabric.Fabric: those of the connections, and with ud_ in front
// those of the datagrams.
func (f *Fabric) Stats() map[string]uint64 {
	m := f.rc.Stats()
	for name, n := range f.ud.Stats() {
		m["ud_"+name] = n
	}
	return m
}

// Close implements fabric.Fabric.
func (f *Fabric) Close(ctx context.Context) error {
	return errors.Join(f.rc.Close(ctx), f.ud.Close(ctx)) // the latter has the queue
}
