// Package frame implements the protocol between softrnic mpirun and its agents, one
// on each host: frames of a kind, a rank and bytes over the agent's standard input
// and output. ssh carries them, so there is no port for strangers, and the end of
// either side closes the other's input.
//
//	w := frame.NewWriter(out)
//	err := w.Write(frame.Stdout, rank, b)
//
//	kind, rank, b, err := frame.NewReader(in).Next()
//
// An agent begins with Hello, since the startup files of a shell may have written
// before. Then the launcher sends Start, and Stdin, PMI, Signal and Stop. The agent
// sends HostReady, Started or Failed for each rank, Stdout, Stderr, PMI, Credit, Note and
// Exited, and Finished at the end.
package frame

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/softrnic/softrnic/internal/sendqueue"
)

// Hello is the first output of an agent. Its number is the version of the protocol, which must be
// equal on both sides.
const Hello = "\n\x01softrnic-mpirun-agent 2\n"

// A Kind is the type of a frame.
type Kind byte

// Kinds of frames from the launcher.
const (
	Start  Kind = 'S' // a Spec
	Stdin  Kind = 'i' // bytes for a rank's standard input; no bytes mean its end
	Signal Kind = 'K' // the number of a signal for all ranks
	Stop   Kind = 'E' // a StopRequest: terminate all processes, then send Finished
)

// PMI carries bytes of a rank's connection to its process manager, in both directions; no bytes
// mean its end.
const PMI Kind = 'p'

// Kinds of frames from an agent.
const (
	HostReady Kind = 'A' // a HostInfo, the first frame
	Started   Kind = 'R' // a Process
	Failed    Kind = 'F' // a Failure: the rank could not be started
	Stdout    Kind = 'o'
	Stderr    Kind = 'e'
	Credit    Kind = 'c' // a number: so many bytes of Stdin are written
	Exited    Kind = 'X' // an Exit; its output may still come
	Note      Kind = 'n' // a message for the user
	Finished  Kind = 'B' // a Summary, the last frame
)

// A Spec describes the ranks that an agent starts.
type Spec struct {
	Host    string   // the name that the user gives it
	Size    int      // ranks of the whole job
	Environ []string // NAME=VALUE of all ranks, beside the agent's own environment
	Secret  string   // of the port that ranks connect to; without, they inherit a socket
	Ranks   []Rank
	Bind    string // a cpus.Binding

	GraceMillis int // as in StopRequest, when the launcher ends without one

	// Peers are addresses and names of the other hosts of the job, the best first; none
	// if its ranks are all on this one. The ranks' own address is the one by which those
	// reach it. Family is 4 or 6 if it has to be of that IP version, and else 0.
	// Here is their own address where the user has named the host by it, or empty.
	Peers  []string
	Family int
	Here   string
}

// A HostInfo describes the addresses of an agent's host.
type HostInfo struct {
	Here  string   // the address that the launcher's ssh came to; empty without ssh
	Addrs []string // of the host's interfaces, without loopback and link-local ones
}

// A Rank is one process to start.
type Rank struct {
	Rank    int
	Args    []string // the program and its arguments
	Dir     string
	Environ []string
	Stdin   bool // receives the standard input of the launcher
}

// A StopRequest is the time between SIGTERM and SIGKILL.
type StopRequest struct{ GraceMillis int }

// A Process is a started rank.
type Process struct{ PID int }

// A Failure is the reason why a rank could not be started, and the exit status that a shell would
// report.
type Failure struct {
	Why    string
	Status int
}

// An Exit describes how a process has ended.
type Exit struct {
	Status int
	Signal int    // that has ended it, or 0
	Name   string // of the signal
	Core   bool
}

// A Summary has the counters of an agent.
type Summary struct{ Refused uint64 }

// Lengths in bytes. Output and input of ranks are sent in frames of at most Chunk bytes.
const (
	Chunk     = 32 << 10
	maxBytes  = 16 << 20 // of any frame; the largest is a Spec with the environment of every rank
	headerLen = 1 + 4 + 4
)

// A Writer writes frames. Its methods may be called from any goroutine.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
	b  []byte
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes a frame in one call. A line feed follows every frame, because srun forwards the
// output of a step line by line.
func (w *Writer) Write(kind Kind, rank int, b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = appendFrame(w.b[:0], kind, rank, b)
	_, err := w.w.Write(w.b)
	return err
}

// WriteJSON writes a frame with v as JSON.
func (w *Writer) WriteJSON(kind Kind, rank int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.Write(kind, rank, b)
}

func appendFrame(to []byte, kind Kind, rank int, b []byte) []byte {
	to = append(to, byte(kind))
	to = binary.BigEndian.AppendUint32(to, uint32(rank))
	to = binary.BigEndian.AppendUint32(to, uint32(len(b)))
	to = append(to, b...)
	return append(to, '\n')
}

// A Reader reads frames.
type Reader struct {
	r *bufio.Reader
	b []byte
}

// NewReader returns a Reader from r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, Chunk+headerLen)} }

// Next returns the next frame. b is valid until the next call. The error is io.EOF if the input
// ends between frames.
func (r *Reader) Next() (kind Kind, rank int, b []byte, err error) {
	var h [headerLen]byte
	if _, err := io.ReadFull(r.r, h[:]); err != nil {
		return 0, 0, nil, err
	}
	size := binary.BigEndian.Uint32(h[5:])
	if size > maxBytes {
		return 0, 0, nil, fmt.Errorf("frame of %d bytes: limit %d", size, maxBytes)
	}
	if int(size) > cap(r.b) {
		r.b = make([]byte, size)
	}
	r.b = r.b[:size]
	if _, err := io.ReadFull(r.r, r.b); err != nil {
		return 0, 0, nil, fmt.Errorf("truncated frame: %w", err)
	}
	if end, err := r.r.ReadByte(); err != nil || end != '\n' {
		return 0, 0, nil, fmt.Errorf("frame %q of %d bytes has no line feed after it: %v", h[0], size, err)
	}
	return Kind(h[0]), int(int32(binary.BigEndian.Uint32(h[1:5]))), r.b, nil
}

// maxNoise is the maximum number of bytes before Hello.
const maxNoise = 64 << 10

// ReadHello reads up to and including Hello. It writes the bytes before it, such as a shell's
// greeting, to other. The error is io.ErrUnexpectedEOF if the input ends before Hello.
func (r *Reader) ReadHello(other io.Writer) error {
	var seen []byte
	for {
		c, err := r.r.ReadByte()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			other.Write(seen)
			return err
		}
		seen = append(seen, c)
		if n := len(seen) - len(Hello); n >= 0 && string(seen[n:]) == Hello {
			_, err := other.Write(seen[:n])
			return err
		}
		if len(seen) > maxNoise {
			other.Write(seen)
			return fmt.Errorf("no agent of this version of softrnic in the first %d bytes", len(seen))
		}
	}
}

// A Queue writes frames in a goroutine, so that a peer that does not read blocks no sender.
// Senders bound the queued bytes: by credit, or by replying to requests only.
type Queue struct{ q *sendqueue.Queue }

// NewQueue returns a Queue to w, which it closes after the last frame.
func NewQueue(w io.WriteCloser) *Queue { return &Queue{sendqueue.New(w, sendqueue.Options{})} }

// Send queues a copy of a frame. It does nothing after Close or a write error, which the reader of
// the other direction reports.
func (q *Queue) Send(kind Kind, rank int, b []byte) {
	q.q.AppendFunc(func(queued []byte) []byte { return appendFrame(queued, kind, rank, b) })
}

// SendJSON queues a frame with v as JSON.
func (q *Queue) SendJSON(kind Kind, rank int, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		q.Send(kind, rank, b)
	}
	return err
}

// Close makes the queue close the destination after the queued frames.
func (q *Queue) Close() { q.q.CloseAfterFlush() }
