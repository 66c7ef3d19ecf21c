package verbsbench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/overlap"
	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/verbs/uverbs"
)

const (
	worker   = "verbsbench"
	roleSide = "end"
)

// A request opens a target (Ping, Stream, IdleConns or RDM is set), runs a round of it or
// closes it, or measures the process while it is idle. Both sides receive the same request.
type request struct {
	Target    int
	Ping      *PingOptions      `json:",omitempty"`
	Stream    *StreamOptions    `json:",omitempty"`
	IdleConns *IdleConnsOptions `json:",omitempty"`
	RDM       *RDMOptions       `json:",omitempty"`
	Iters     int               `json:",omitempty"`
	Overlap   *overlapRound     `json:",omitempty"` // of RDM
	For       time.Duration     `json:",omitempty"`
	Idle      bool              `json:",omitempty"` // measure the usage of the process for For
	Close     bool              `json:",omitempty"`
}

// A reply is the result of a round as measured by rank 0, or the heap growth of IdleConns or the
// usage of the process.
type reply struct {
	Latency   *measure.Latency `json:",omitempty"`
	Flow      *Flow            `json:",omitempty"`
	HeapBytes int64            `json:",omitempty"`
	Overlap   overlap.Result   `json:",omitzero"`
	Stolen    float64          `json:",omitempty"` // percent
	Usage     measure.Usage    `json:",omitzero"`
}

// A runner is a target on one side.
type runner interface {
	runRound(ctx context.Context, r request) (reply, error)
	close() error
}

// A side is one of the two processes: a device and the targets on it.
type side struct {
	*proc.Worker
	path    verbs.MTU
	dev     verbs.Device
	pd      verbs.PD
	payload payload.Pattern
	targets map[int]runner
}

func init() {
	proc.RegisterArgs(worker, roleSide, func(ctx context.Context, w *proc.Worker, c Config) error {
		e, err := openSide(w, c)
		if err != nil {
			return err
		}
		defer e.dev.Close()
		return proc.Serve(ctx, w, e.serveRequest)
	})
}

func openSide(w *proc.Worker, c Config) (*side, error) {
	var path verbs.MTU
	if err := path.UnmarshalText(strconv.AppendInt(nil, int64(c.MTU), 10)); err != nil {
		return nil, err
	}
	dev, err := openDevice(c)
	if err != nil {
		return nil, err
	}
	pd, err := dev.AllocPD()
	if err != nil {
		dev.Close()
		return nil, err
	}
	return &side{Worker: w, path: path, dev: dev, pd: pd, targets: map[int]runner{}}, nil
}

// openDevice opens the device that c selects.
func openDevice(c Config) (verbs.Device, error) {
	if c.Device != "" {
		return uverbs.Open(uverbs.Options{Name: c.Device})
	}
	if c.Spin == 0 {
		c.Spin = -1
	}
	return rnic.Open(rnic.Options{
		AnyPort: true, // the sides exchange their ports
		Spin:    c.Spin, RecvBuffer: c.RecvBuffer, Impair: c.Impair, NoSharedMemory: c.NoSharedMemory,
		ICM: rnic.ICM{Entries: c.ICMEntries, MissPenalty: c.ICMMissPenalty},
	})
}

func (e *side) serveRequest(ctx context.Context, r request) (reply, error) {
	s, known := e.targets[r.Target]
	switch {
	case r.Ping != nil:
		s, err := openPing(ctx, e, *r.Ping)
		e.targets[r.Target] = s
		return reply{}, err
	case r.Stream != nil:
		s, err := openStream(ctx, e, *r.Stream)
		e.targets[r.Target] = s
		return reply{}, err
	case r.RDM != nil:
		s, err := openRDM(ctx, e, *r.RDM)
		e.targets[r.Target] = s
		return reply{}, err
	case r.IdleConns != nil:
		s, err := openIdleConns(ctx, e, *r.IdleConns)
		e.targets[r.Target] = s
		return reply{HeapBytes: s.heapBytes}, err
	case r.Idle:
		u, err := measure.IdleUsage(ctx, r.For)
		return reply{Usage: u}, err
	case !known:
		return reply{}, fmt.Errorf("verbsbench: target %d not open", r.Target)
	case r.Close:
		delete(e.targets, r.Target)
		return reply{}, s.close()
	default:
		return s.runRound(ctx, r)
	}
}

// peerRank returns the rank of the other side.
func (e *side) peerRank() int { return 1 - e.Rank }

// syncMemory orders this goroutine's accesses to registered memory before accesses of peers
// that involve no work request of this side: entering the adapter synchronizes the two, as Go's
// memory model requires.
func (e *side) syncMemory() { e.dev.Progress() }

// payloadPattern returns at least the first n bytes of the payload pattern, which all targets
// share.
func (e *side) payloadPattern(n int) payload.Pattern {
	if len(e.payload) < n {
		e.payload = payload.New(n)
	}
	return e.payload
}
