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

// roundTimeout is the maximum duration of a round. A round that hangs ends with an error of the
// connection before the parent kills the process.
const roundTimeout = time.Minute

// A request requests one round from both sides. One of the fields is set.
type request struct {
	Ping   *pingRound   `json:",omitempty"`
	Stream *streamRound `json:",omitempty"`
	Burst  *burstRound  `json:",omitempty"`
}

// A reply is the result of a round on one side.
type reply struct {
	Latency *measure.Latency `json:",omitempty"`
	Flow    *Flow            `json:",omitempty"`
}

// A side is one of the two processes and its end of the connection.
type side struct {
	*proc.Worker
	conn   net.Conn
	gauge  gauge
	want   payload.Pattern
	memory []byte // read buffer
}

func init() {
	proc.RegisterArgs(worker, roleSide, func(ctx context.Context, w *proc.Worker, c Config) error {
		e := &side{Worker: w}
		disconnect, err := e.connectPeer(ctx, c)
		if err != nil {
			return err
		}
		defer disconnect()
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
		err = fmt.Errorf("%w after %v; connection: %+v", err, roundTimeout, c.Stats())
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
		err = errors.New("sdpbench: empty request")
	}
	return out, err
}

// roundAck is the byte with which a side acknowledges that it has read a whole round.
const roundAck = 0xA5

func (e *side) sendRoundAck() error {
	_, err := e.conn.Write([]byte{roundAck})
	return err
}

// waitRoundAck waits for the acknowledgement, which also makes earlier writes arrive:
// RDMA-based flow control may defer some of the data until the next call.
func (e *side) waitRoundAck() error {
	var ack [1]byte
	_, err := io.ReadFull(e.conn, ack[:])
	if err == nil && ack[0] != roundAck {
		err = fmt.Errorf("wrong data: acknowledgement 0x%02x, want 0x%02x", ack[0], roundAck)
	}
	return err
}

// exchangeRoundAck ends a round of messages in both directions. Rank 0 acknowledges the last
// message of rank 1.
func (e *side) exchangeRoundAck() error {
	if e.Rank == 0 {
		return e.sendRoundAck()
	}
	return e.waitRoundAck()
}

// payloadPattern returns the first n bytes of the payload pattern.
func (e *side) payloadPattern(n int) payload.Pattern {
	if len(e.want) < n {
		e.want = payload.New(n)
	}
	return e.want[:n]
}

// clearedBuffer returns n zeroed bytes, in which all received data is visible.
func (e *side) clearedBuffer(n int) []byte {
	if len(e.memory) < n {
		e.memory = make([]byte, n)
	}
	clear(e.memory[:n])
	return e.memory[:n]
}
