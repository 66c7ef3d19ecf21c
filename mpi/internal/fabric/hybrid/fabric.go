// Package hybrid carries packets over reliable connections to some ranks, and over
// datagrams to the others: memory grows with the connections, of which each rank has a
// limited number, and not with the ranks (PPoPP '07, section 4.3).
//
//	f, err := hybrid.New(dev, host, book, hybrid.Options{Limit: 8}) // a fabric.Fabric
//
// All ranks know the rule: ranks a and b use a connection if (a+b) mod size < Limit. So
// a rank has at most Limit connections, and both ranks of a pair use the same
// transport. A pairwise exchange that goes through the sums in order has Limit rounds
// over connections and the rest over datagrams.
//
// The fabric consists of those of packages rdma and ud, on one adapter and with one
// completion queue, so that a wait covers both.
package hybrid

import (
	"context"
	"errors"

	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/internal/fabric/ud"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// Options are the parameters of the fabric.
type Options struct {
	Limit int          // maximum number of connections of a rank
	RDMA  rdma.Options // of the connections; Fast is ignored
	UD    ud.Options   // of the datagrams
}

// A Fabric carries packets over connections and datagrams.
type Fabric struct {
	rank, size, limit int

	cq  verbs.CQ
	rc  *rdma.Fabric
	ud  *ud.Fabric
	qpn uint32 // queue pair of the datagrams

	completions progress.Completions

	// Completions by fabric.
	rcCompletions, udCompletions []verbs.WC
}

var _ fabric.Fabric = (*Fabric)(nil)

// New returns the fabric of a rank on a device, which it does not close. The other
// ranks can connect once all ranks have called Book.Fence.
func New(dev verbs.Device, host fabric.Host, book fabric.Book, o Options) (*Fabric, error) {
	f := &Fabric{rank: book.Rank(), size: book.Size(), limit: o.Limit}
	var err error
	if f.ud, err = ud.NewPart(dev, host, book, func() { f.pollCompletions() }, o.UD); err != nil {
		return nil, err
	}
	f.cq, f.qpn = f.ud.Queue()
	f.completions.CQ = f.cq
	shared := &fabric.SharedCQ{CQ: f.cq, OtherCompletions: f.cq.Depth(), Poll: f.pollCompletions, GrowReceives: f.ud.GrowReceives}
	if f.rc, err = rdma.NewPart(dev, host, book, shared, o.RDMA); err != nil {
		return nil, errors.Join(err, f.ud.Close(context.Background()))
	}
	return f, nil
}

// UsesConnection reports whether two ranks of a job use a connection.
func UsesConnection(a, b, size, limit int) bool { return (a+b)%size < limit }

// fabricFor returns the fabric that reaches a rank.
func (f *Fabric) fabricFor(rank int) fabric.Fabric {
	if UsesConnection(f.rank, rank, f.size, f.limit) {
		return f.rc
	}
	return f.ud
}

// Limits implements protocol.Net.
func (f *Fabric) Limits(rank int) protocol.Limits { return f.fabricFor(rank).Limits(rank) }

// Send implements protocol.Net.
func (f *Fabric) Send(rank int, h *envelope.Header, payload []byte) bool {
	return f.fabricFor(rank).Send(rank, h, payload)
}

// RegisterMemory implements protocol.Net.
func (f *Fabric) RegisterMemory(rank int, b []byte, write bool) (envelope.Key, protocol.Registration, error) {
	return f.fabricFor(rank).RegisterMemory(rank, b, write)
}

// DeregisterMemory implements protocol.Net. Only connections register memory.
func (f *Fabric) DeregisterMemory(e protocol.Registration) { f.rc.DeregisterMemory(e) }

// RDMARead implements protocol.Net.
func (f *Fabric) RDMARead(rank int, b []byte, key envelope.Key, transferID uint64) error {
	return f.fabricFor(rank).RDMARead(rank, b, key, transferID)
}

// RDMAWrite implements protocol.Net.
func (f *Fabric) RDMAWrite(rank int, b []byte, key envelope.Key, transferID uint64) error {
	return f.fabricFor(rank).RDMAWrite(rank, b, key, transferID)
}

// Poll implements fabric.Fabric.
func (f *Fabric) Poll() bool {
	f.Flush()
	return f.pollCompletions()
}

// pollCompletions handles the completions, and reports whether there were any.
func (f *Fabric) pollCompletions() bool {
	some, err := f.completions.Poll(f.dispatchCompletions)
	if err != nil { // of the CQ: all ranks fail
		f.rc.Fail(err)
		f.ud.Fail(err)
	}
	return some
}

// Flush implements fabric.Fabric.
func (f *Fabric) Flush() {
	f.rc.Flush()
	f.ud.Flush()
}

// Block implements fabric.Fabric.
func (f *Fabric) Block(ctx context.Context) error { return f.completions.Block(ctx) }

// dispatchCompletions passes completions to their fabrics.
func (f *Fabric) dispatchCompletions(wcs []verbs.WC) {
	f.rcCompletions, f.udCompletions = f.rcCompletions[:0], f.udCompletions[:0]
	for _, wc := range wcs {
		if wc.QPN == f.qpn {
			f.udCompletions = append(f.udCompletions, wc)
		} else {
			f.rcCompletions = append(f.rcCompletions, wc)
		}
	}
	if len(f.rcCompletions) > 0 {
		f.rc.Complete(f.rcCompletions)
	}
	if len(f.udCompletions) > 0 {
		f.ud.Complete(f.udCompletions)
	}
}

// ConnectAll implements fabric.Fabric.
func (f *Fabric) ConnectAll(ctx context.Context) error {
	for i := 1; i < f.size; i++ {
		if rank := (f.rank + f.size - i) % f.size; f.fabricFor(rank) == fabric.Fabric(f.rc) {
			f.rc.Connect(rank)
		}
	}
	return f.ud.ConnectAll(ctx)
}

// Disconnect implements fabric.Fabric.
func (f *Fabric) Disconnect(rank int, cause error) { f.fabricFor(rank).Disconnect(rank, cause) }

// Stats implements fabric.Fabric.
func (f *Fabric) Stats() fabric.Stats {
	s := f.rc.Stats()
	s.DatagramStats = f.ud.Stats().DatagramStats
	return s
}

// Close implements fabric.Fabric.
func (f *Fabric) Close(ctx context.Context) error {
	return errors.Join(f.rc.Close(ctx), f.ud.Close(ctx)) // ud owns the queue
}
