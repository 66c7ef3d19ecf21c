package verbsbench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

const (
	worker  = "verbsbench"
	roleEnd = "end"
)

// request opens a subject (Ping, Stream or Crowd is set), runs a round of it or
// closes it. Both ends get the same.
type request struct {
	Subject int
	Ping    *PingOptions   `json:",omitempty"`
	Stream  *StreamOptions `json:",omitempty"`
	Crowd   *CrowdOptions  `json:",omitempty"`
	RDM     *RDMOptions    `json:",omitempty"`
	Iters   int            `json:",omitempty"`
	For     time.Duration  `json:",omitempty"`
	Close   bool           `json:",omitempty"`
}

// reply is what a round measured, as rank 0 knows it, or what opening a crowd
// took.
type reply struct {
	Latency   *measure.Latency `json:",omitempty"`
	Flow      *Flow            `json:",omitempty"`
	HeapBytes int64            `json:",omitempty"`
}

// A runner is a subject on one end.
type runner interface {
	run(ctx context.Context, r request) (reply, error)
	close() error
}

// end is one of the two processes: a device and the subjects on it.
type end struct {
	*proc.Worker
	path     verbs.MTU
	dev      *rnic.Device
	pd       verbs.PD
	payload  payload.Pattern
	subjects map[int]runner
}

func init() {
	proc.Register(worker, roleEnd, func(ctx context.Context, w *proc.Worker) error {
		c, err := proc.Args[Config](w)
		if err != nil {
			return err
		}
		e, err := openEnd(w, c)
		if err != nil {
			return err
		}
		defer e.dev.Close()
		return proc.Serve(ctx, w, e.serve)
	})
}

func openEnd(w *proc.Worker, c Config) (*end, error) {
	var path verbs.MTU
	if err := path.UnmarshalText(strconv.AppendInt(nil, int64(c.MTU), 10)); err != nil {
		return nil, err
	}
	if c.Spin == 0 {
		c.Spin = -1
	}
	dev, err := rnic.Open(rnic.Options{
		AnyPort: true, // the ends tell each other
		Spin:    c.Spin, RecvBuffer: c.RecvBuffer, Impair: c.Impair,
		ICM: rnic.ICM{Entries: c.ICMEntries, MissPenalty: c.ICMMissPenalty},
	})
	if err != nil {
		return nil, err
	}
	pd, err := dev.AllocPD()
	if err != nil {
		dev.Close()
		return nil, err
	}
	return &end{Worker: w, path: path, dev: dev, pd: pd, subjects: map[int]runner{}}, nil
}

func (e *end) serve(ctx context.Context, r request) (reply, error) {
	s, known := e.subjects[r.Subject]
	switch {
	case r.Ping != nil:
		s, err := openPing(ctx, e, *r.Ping)
		e.subjects[r.Subject] = s
		return reply{}, err
	case r.Stream != nil:
		s, err := openStream(ctx, e, *r.Stream)
		e.subjects[r.Subject] = s
		return reply{}, err
	case r.RDM != nil:
		s, err := openRDM(ctx, e, *r.RDM)
		e.subjects[r.Subject] = s
		return reply{}, err
	case r.Crowd != nil:
		s, err := openCrowd(ctx, e, *r.Crowd)
		e.subjects[r.Subject] = s
		return reply{HeapBytes: s.heap}, err
	case !known:
		return reply{}, fmt.Errorf("verbsbench: subject %d is not open", r.Subject)
	case r.Close:
		delete(e.subjects, r.Subject)
		return reply{}, s.close()
	default:
		return s.run(ctx, r)
	}
}

// peer is the rank of the other end.
func (e *end) peer() int { return 1 - e.Rank }

// handOver leaves memory that this goroutine has read or written to peers who
// will read or write it without a work request of ours: to enter the adapter
// orders the two, as Go's memory model wants.
func (e *end) handOver() { e.dev.Progress() }

// pattern is at least the first n bytes of the payload of all subjects.
func (e *end) pattern(n int) payload.Pattern {
	if len(e.payload) < n {
		e.payload = payload.New(n)
	}
	return e.payload
}
