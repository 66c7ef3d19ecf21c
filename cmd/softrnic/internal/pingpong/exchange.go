package pingpong

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// Kinds of work, in WRID and in exchange.waitingFor.
const (
	recvWork = 1
	sendWork = 2
)

// contextCheckPolls is the number of polls between two checks of the context.
const contextCheckPolls = 1 << 10

// An exchange is the state of the message exchange.
type exchange struct {
	*endpoint
	send           []verbs.SendWR // one a queue pair
	qpIndex        map[uint32]int // queue pair by number
	waitingFor     []int          // work that each queue pair waits for before it sends
	postedReceives int            // receives
	sent           int
	received       int
	gaps           gapStats // of receives, with Options.Times
}

// exchangeMessages exchanges the messages. The result has the number sent each way and the time, also
// when ctx ends it.
func (e *endpoint) exchangeMessages(ctx context.Context) (r Result, err error) {
	ctx, alive := watch.Start(ctx, e.IdleTimeout)
	defer alive.Stop()
	g := e.newExchange()
	if e.Server != "" {
		for i := range e.qps {
			if err := g.postSend(i); err != nil {
				return r, err
			}
		}
	}
	wcs := make([]verbs.WC, e.RxDepth+e.NumQP)
	start := time.Now()
	for g.sent < e.Iters || g.received < e.Iters {
		n, err := e.pollCompletions(ctx, wcs)
		if err != nil {
			r.Iters, r.Elapsed, r.Gaps = min(g.sent, g.received), time.Since(start), g.gaps.gaps()
			return r, g.withProgress(err)
		}
		alive.Beat()
		for i := range wcs[:n] {
			if err := g.handleCompletion(&wcs[i]); err != nil {
				return r, err
			}
		}
	}
	return Result{Iters: e.Iters, Elapsed: time.Since(start), Gaps: g.gaps.gaps()}, nil
}

func (e *endpoint) newExchange() *exchange {
	g := &exchange{endpoint: e, qpIndex: make(map[uint32]int), postedReceives: e.RxDepth}
	for i, qp := range e.qps {
		g.qpIndex[qp.Num()] = i
		g.waitingFor = append(g.waitingFor, recvWork)
		wr := verbs.SendWR{WRID: sendWork, Opcode: verbs.WRSend, Flags: verbs.SendSignaled,
			SGList: []verbs.SGE{e.mr.SGE(e.headerLen, e.Size)}}
		if e.Kind == UD {
			wr.AH, wr.RemoteQPN, wr.RemoteQKey = e.ah, e.remote[0].QPN, qkey
		}
		g.send = append(g.send, wr)
	}
	return g
}

// postSend sends a message on queue pair i.
func (g *exchange) postSend(i int) error {
	_, err := g.qps[i].PostSend(g.send[i : i+1])
	g.waitingFor[i] = sendWork | recvWork
	return err
}

// handleCompletion handles a completion and sends when its queue pair waits for no more work.
func (g *exchange) handleCompletion(wc *verbs.WC) error {
	if err := wc.Err(); err != nil {
		return fmt.Errorf("failed status %s (%d): %w", verbs.Describe(wc.Status), wc.Status, err)
	}
	i := g.qpIndex[wc.QPN]
	if wc.Opcode.IsRecv() {
		g.gaps.addCompletion(wc.Time)
		g.received++
		g.waitingFor[i] &^= recvWork
		if int(wc.ByteLen) != g.headerLen+g.Size {
			return fmt.Errorf("message of %d bytes received, want %d; give both sides the same -s", int(wc.ByteLen)-g.headerLen, g.Size)
		}
		if g.postedReceives--; g.postedReceives <= g.NumQP {
			if err := g.postReceives(g.RxDepth - g.postedReceives); err != nil {
				return err
			}
			g.postedReceives = g.RxDepth
		}
	} else {
		g.sent++
		g.waitingFor[i] &^= sendWork
	}
	if g.sent < g.Iters && g.waitingFor[i] == 0 {
		return g.postSend(i)
	}
	return nil
}

// pollCompletions returns at least one completion.
func (e *endpoint) pollCompletions(ctx context.Context, wcs []verbs.WC) (int, error) {
	if e.Events {
		n, err := e.cq.PollWait(ctx, wcs)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return n, err
	}
	for {
		// The count spans calls: each call may find a completion soon.
		if e.polls++; e.polls%contextCheckPolls == 0 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if n, err := e.cq.Poll(wcs); n > 0 || err != nil {
			return n, err
		}
	}
}

// ErrIdle reports that no more messages came.
var ErrIdle = watch.ErrIdle

// withProgress adds the message counts to the error that ended a wait.
func (g *exchange) withProgress(err error) error {
	if !errors.Is(err, ErrIdle) && !errors.Is(err, context.Canceled) {
		return err
	}
	so := fmt.Sprintf("%d of %d messages sent, %d received", g.sent, g.Iters, g.received)
	if !errors.Is(err, ErrIdle) {
		return fmt.Errorf("%w: %s", err, so)
	}
	switch {
	case g.sent == 0 && g.received == 0:
		so += "; is the peer's address reachable on UDP port 4791?"
	case g.Kind == UC || g.Kind == UD:
		so += "; this transport does not retransmit"
	}
	return fmt.Errorf("%w since %v: %s", err, g.IdleTimeout, so)
}

// page is the distance of the marks in a message: with Check the originals set the first byte of
// each page to its number modulo sizeof(char), which is 0.
const page = 4096

// payload returns the memory that messages are sent from and received in.
func (e *endpoint) payload() []byte { return e.mr.Bytes()[e.headerLen:] }

// wantByte returns the expected byte i of a message.
func (e *endpoint) wantByte(i int) byte {
	if e.Check && i%page == 0 || e.Kind == SRQ {
		return 0
	}
	return fillByte
}

// fillMessage writes the message. A server with Check inverts it, so that the expected content at
// the end must have come from the client.
func (e *endpoint) fillMessage() {
	flip := byte(0)
	if e.Check && e.Server == "" {
		flip = 0xff
	}
	m := e.payload()
	for i := range m {
		m[i] = e.wantByte(i) ^ flip
	}
}

// A DataError reports a message with unexpected content.
type DataError struct {
	Page      int // of the first wrong byte
	Offset    int // of it in the message
	Got, Want byte
}

// Error implements error.
func (d *DataError) Error() string {
	return fmt.Sprintf("invalid data in page %d: byte %d is %#02x and should be %#02x", d.Page, d.Offset, d.Got, d.Want)
}

// checkMessage compares the last message with the expected content.
func (e *endpoint) checkMessage(message []byte) error {
	for i, got := range message {
		if want := e.wantByte(i); got != want {
			return &DataError{i / page, i, got, want}
		}
	}
	return nil
}
