package sdpbench

import (
	"bufio"
	"context"
	"io"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
	"github.com/softrnic/softrnic/sdp"
)

const (
	workingSet     = 4 << 20  // bytes of memory that messages cycle through
	greedyReadSize = 64 << 10 // read size of a greedy reader
	bufferedSize   = 64 << 10 // of the buffers of package bufio
)

// A streamRound requests a stream of messages.
type streamRound struct {
	StreamOptions
	Messages int
}

// bufferLen returns the length of the memory that messages cycle through: as many messages as
// fit into the working set.
func (s *streamRound) bufferLen() int { return max(1, workingSet/s.Size) * s.Size }

func (s *streamRound) totalBytes() int64 { return int64(s.Messages) * int64(s.Size) }

func (s *streamRound) runRound(ctx context.Context, e *side) (*Flow, error) {
	want := e.payloadPattern(s.bufferLen())
	var memory []byte
	if e.Rank == 1 {
		memory = e.clearedBuffer(s.bufferLen())
	}
	if err := proc.Barrier(ctx, e.Worker); err != nil {
		return nil, err
	}
	var f *Flow
	var err error
	if e.Rank == 0 {
		f, err = s.writeStream(e, want)
	} else {
		f, err = s.readStream(e, memory)
	}
	if err == nil && e.Rank == 1 {
		err = s.verifyMemory(memory, want)
	}
	return f, err
}

// writeStream sends the messages and waits for the acknowledgement.
func (s *streamRound) writeStream(e *side, from []byte) (*Flow, error) {
	f := &Flow{Bytes: s.totalBytes()}
	before := statsOf(e.conn)
	measured := e.startUsage(s.MeasureUse)
	start := time.Now()
	err := s.writeMessages(e, from)
	f.SendUse = measured().send // from here on the buffers only drain
	if err == nil {
		err = e.waitRoundAck()
	}
	f.Elapsed = time.Since(start)
	after := statsOf(e.conn)
	f.Messages = int64(after.MessagesSent - before.MessagesSent)
	f.ZeroCopy = int64(after.ZeroCopySent - before.ZeroCopySent)
	return f, err
}

// writeMessages sends the messages.
func (s *streamRound) writeMessages(e *side, from []byte) error {
	w, flush := io.Writer(e.conn), func() error { return nil }
	if s.Buffered {
		b := bufio.NewWriterSize(e.conn, bufferedSize)
		w, flush = b, b.Flush
	}
	for i, at := 0, 0; i < s.Messages; i++ {
		if _, err := w.Write(from[at : at+s.Size]); err != nil {
			return err
		}
		if at += s.Size; at == len(from) {
			at = 0
		}
	}
	return flush()
}

// readStream receives the messages and sends the acknowledgement.
func (s *streamRound) readStream(e *side, memory []byte) (*Flow, error) {
	f := &Flow{Bytes: s.totalBytes()}
	measured := e.startUsage(s.MeasureUse)
	err := s.readBytes(e, memory, f.Bytes)
	f.ReceiveUse = measured().receive
	if err == nil {
		err = e.sendRoundAck()
	}
	return f, err
}

// readBytes reads left bytes. The writer sends no more before it has the acknowledgement, so that
// nothing remains in a buffer of the reader.
func (s *streamRound) readBytes(e *side, memory []byte, left int64) error {
	r := io.Reader(e.conn)
	if s.Buffered {
		r = bufio.NewReaderSize(e.conn, bufferedSize)
	}
	for at := 0; left > 0; {
		n, err := s.readOnce(r, memory[at:min(int64(len(memory)), int64(at)+left)])
		if err != nil {
			return err
		}
		left -= int64(n)
		s.Compute.forBytes(n).Execute()
		if at += n; at == len(memory) {
			at = 0
		}
	}
	return nil
}

// readOnce reads one message, or any available data if the reader is greedy.
func (s *streamRound) readOnce(r io.Reader, memory []byte) (int, error) {
	if s.Greedy {
		return r.Read(memory[:min(len(memory), max(greedyReadSize, s.Size))])
	}
	return io.ReadFull(r, memory[:s.Size])
}

// verifyMemory compares memory with the data of the stream.
func (s *streamRound) verifyMemory(memory []byte, want payload.Pattern) error {
	filled := min(s.totalBytes(), int64(len(memory)))
	if err := want.Check(memory[:filled], false); err != nil {
		return err
	}
	return payload.CheckEmpty(memory[filled:])
}

// statsOf returns the statistics of an SDP connection, or zero for other connections.
func statsOf(conn any) (s sdp.Stats) {
	if c, ok := conn.(*sdp.Conn); ok {
		s = c.Stats()
	}
	return s
}
