package sdpbench

import (
	"context"
	"io"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/sdp"
)

const (
	workingSet = 4 << 20  // bytes that messages are taken from and put to in turn
	greed      = 64 << 10 // what a greedy reader asks for
)

// stream asks for a stream of so many messages.
type stream struct {
	StreamOptions
	Messages int
}

// span is the memory that messages are taken from and put to: as many as fit
// into the working set.
func (s *stream) span() int { return max(1, workingSet/s.Size) * s.Size }

func (s *stream) total() int64 { return int64(s.Messages) * int64(s.Size) }

func (s *stream) run(ctx context.Context, e *end) (*Flow, error) {
	want := e.pattern(s.span())
	var memory []byte
	if e.Rank == 1 {
		memory = e.empty(s.span())
	}
	if err := proc.Barrier(ctx, e.Worker); err != nil {
		return nil, err
	}
	var f *Flow
	var err error
	if e.Rank == 0 {
		f, err = s.write(e, want)
	} else {
		f, err = s.read(e, memory)
	}
	if err == nil && e.Rank == 1 {
		err = s.check(memory, want)
	}
	return f, err
}

// write sends the messages and waits for thanks.
func (s *stream) write(e *end, from []byte) (*Flow, error) {
	f := &Flow{Bytes: s.total()}
	before := statsOf(e.conn)
	measured := e.measure(s.Use)
	start := time.Now()
	err := s.writeAll(e, from)
	f.SendUse = measured().send // what empties from now on nobody wants to fill
	if err == nil {
		err = e.awaitThanks()
	}
	f.Elapsed = time.Since(start)
	after := statsOf(e.conn)
	f.Messages = int64(after.MessagesSent - before.MessagesSent)
	f.ZeroCopy = int64(after.ZeroCopySent - before.ZeroCopySent)
	return f, err
}

// writeAll sends the messages.
func (s *stream) writeAll(e *end, from []byte) error {
	for i, at := 0, 0; i < s.Messages; i++ {
		if _, err := e.conn.Write(from[at : at+s.Size]); err != nil {
			return err
		}
		if at += s.Size; at == len(from) {
			at = 0
		}
	}
	return nil
}

// read takes the messages and gives thanks.
func (s *stream) read(e *end, memory []byte) (*Flow, error) {
	f := &Flow{Bytes: s.total()}
	measured := e.measure(s.Use)
	err := s.readAll(e, memory, f.Bytes)
	f.ReceiveUse = measured().receive
	if err == nil {
		err = e.giveThanks()
	}
	return f, err
}

// readAll takes so many bytes.
func (s *stream) readAll(e *end, memory []byte, left int64) error {
	for at := 0; left > 0; {
		n, err := s.take(e, memory[at:min(int64(len(memory)), int64(at)+left)])
		if err != nil {
			return err
		}
		left -= int64(n)
		s.Think.of(n).do()
		if at += n; at == len(memory) {
			at = 0
		}
	}
	return nil
}

// take reads a message, or what is there.
func (s *stream) take(e *end, memory []byte) (int, error) {
	if s.Greedy {
		return e.conn.Read(memory[:min(len(memory), max(greed, s.Size))])
	}
	return io.ReadFull(e.conn, memory[:s.Size])
}

// check compares memory with what the stream has put there.
func (s *stream) check(memory []byte, want payload.Pattern) error {
	filled := min(s.total(), int64(len(memory)))
	if err := want.Check(memory[:filled], false); err != nil {
		return err
	}
	return payload.CheckEmpty(memory[filled:])
}

// statsOf are the counts of a connection by SDP, and zero of another.
func statsOf(conn any) (s sdp.Stats) {
	if c, ok := conn.(*sdp.Conn); ok {
		s = c.Stats()
	}
	return s
}
