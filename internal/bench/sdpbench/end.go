package sdpbench

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/softrnic/softrnic/internal/bench/measure"
	"github.com/softrnic/softrnic/internal/bench/payload"
	"github.com/softrnic/softrnic/internal/bench/proc"
)

const (
	worker  = "sdpbench"
	roleEnd = "end"
)

// limit is how long a round may take. It ends one that hangs with an error of
// the connection, before the parent ends the process.
const limit = time.Minute

// request asks both ends for one round: one of the three is set.
type request struct {
	Ping   *ping   `json:",omitempty"`
	Stream *stream `json:",omitempty"`
	Burst  *bursts `json:",omitempty"`
}

// reply is what a round measured on one end.
type reply struct {
	Latency *measure.Latency `json:",omitempty"`
	Flow    *Flow            `json:",omitempty"`
}

// end is one of the two processes and its side of the connection.
type end struct {
	*proc.Worker
	conn   net.Conn
	gauge  gauge
	want   payload.Pattern
	memory []byte // to read into
}

func init() {
	proc.Register(worker, roleEnd, func(ctx context.Context, w *proc.Worker) error {
		c, err := proc.Args[Config](w)
		if err != nil {
			return err
		}
		e := &end{Worker: w}
		hangUp, err := e.connect(ctx, c)
		if err != nil {
			return err
		}
		defer hangUp()
		return proc.Serve(ctx, w, e.serve)
	})
}

func (e *end) serve(ctx context.Context, r request) (reply, error) {
	stop := context.AfterFunc(ctx, func() { e.conn.Close() })
	defer stop()
	if err := e.conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return reply{}, err
	}
	switch {
	case r.Ping != nil:
		l, err := r.Ping.run(ctx, e)
		return reply{Latency: l}, err
	case r.Stream != nil:
		f, err := r.Stream.run(ctx, e)
		return reply{Flow: f}, err
	case r.Burst != nil:
		l, err := r.Burst.run(ctx, e)
		return reply{Latency: l}, err
	}
	return reply{}, errors.New("sdpbench: an empty request")
}

// pattern is at least the first n bytes of the payload.
func (e *end) pattern(n int) payload.Pattern {
	if len(e.want) < n {
		e.want = payload.New(n)
	}
	return e.want[:n]
}

// empty is n bytes of memory in which all that comes shows.
func (e *end) empty(n int) []byte {
	if len(e.memory) < n {
		e.memory = make([]byte, n)
	}
	clear(e.memory[:n])
	return e.memory[:n]
}
