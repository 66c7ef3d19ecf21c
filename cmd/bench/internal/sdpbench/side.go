package sdpbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/sdp"
)

const (
	worker   = "sdpbench"
	roleSide = "end"
)

// roundTimeout is how long a round may take. It ends one that hangs with an error of
// the connection, before the parent ends the process.
const roundTimeout = time.Minute

// request asks both ends for one round: one of the three is set.
type request struct {
	Ping   *pingRound   `json:",omitempty"`
	Stream *streamRound `json:",omitempty"`
	Burst  *burstRound  `json:",omitempty"`
}

// reply is what a round measured on one end.
type reply struct {
	Latency *measure.Latency `json:",omitempty"`
	Flow    *Flow            `json:",omitempty"`
}

// side is one of the two processes and its side of the connection.
type side struct {
	*proc.Worker
	conn   net.Conn
	gauge  gauge
	want   payload.Pattern
	memory []byte // to read into
}

func init() {
	proc.Register(worker, roleSide, func(ctx context.Context, w *proc.Worker) error {
		c, err := proc.Args[Config](w)
		if err != nil {
			return err
		}
		e := &side{Worker: w}
		hangUp, err := e.connectPeer(ctx, c)
		if err != nil {
			return err
		}
		defer hangUp()
		return proc.Serve(ctx, w, e.serveRequest)
	})
}

func (e *side) serveRequest(ctx context.Context, r request) (reply, error) {
	stop := context.AfterFunc(ctx, func() { e.conn.Close() })
	defer stop()
	if err := e.conn.SetDeadline(time.Now().Add(roundTimeout)); err != nil {
		return reply{}, err
	}
	out, err := e.runRequest(ctx, r)
	if c, ok := e.conn.(*sdp.Conn); ok && errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w after %v; the connection: %+v", err, roundTimeout, c.Stats())
	}
	return out, err
}

func (e *side) runRequest(ctx context.Context, r request) (out reply, err error) {
	switch {
	case r.Ping != nil:
		out.Latency, err = r.Ping.runRound(ctx, e)
	case r.Stream != nil:
		out.Flow, err = r.Stream.runRound(ctx, e)
	case r.Burst != nil:
		out.Latency, err = r.Burst.runRound(ctx, e)
	default:
		err = errors.New("sdpbench: an empty request")
	}
	return out, err
}

// roundAck is what an end says when it has read all of a round.
const roundAck = 0xA5

func (e *side) sendRoundAck() error {
	_, err := e.conn.Write([]byte{roundAck})
	return err
}

// waitRoundAck makes sure that what was written before arrives: RDMA-based flow
// control may keep some of it until the next call.
func (e *side) waitRoundAck() error {
	var answer [1]byte
	_, err := io.ReadFull(e.conn, answer[:])
	if err == nil && answer[0] != roundAck {
		err = fmt.Errorf("wrong data: 0x%02x for thanks", answer[0])
	}
	return err
}

// exchangeRoundAck ends a round of messages to and fro, of which rank 1 wrote the last.
func (e *side) exchangeRoundAck() error {
	if e.Rank == 0 {
		return e.sendRoundAck()
	}
	return e.waitRoundAck()
}

// payloadPattern is at least the first n bytes of the payload.
func (e *side) payloadPattern(n int) payload.Pattern {
	if len(e.want) < n {
		e.want = payload.New(n)
	}
	return e.want[:n]
}

// clearedBuffer is n bytes of memory in which all that comes shows.
func (e *side) clearedBuffer(n int) []byte {
	if len(e.memory) < n {
		e.memory = make([]byte, n)
	}
	clear(e.memory[:n])
	return e.memory[:n]
}
