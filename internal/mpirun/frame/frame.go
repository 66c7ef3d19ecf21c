package frame

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Hello is the first thing that an agent writes. The number counts the versions of the
// protocol that follows: both sides have to be of one.
const Hello = "\n\x01softrnic-mpirun-agent 2\n"

// Kind says what a frame is.
type Kind byte

// Kinds of frames from the launcher.
const (
	Start  Kind = 'S' // a Spec: ranks to start
	Stdin  Kind = 'i' // bytes for a rank's standard input; none is its end
	Signal Kind = 'K' // a number: all ranks get this signal
	Stop   Kind = 'E' // an Ending: end whatever runs, and say Bye
)

// PMI has bytes of a rank's connection to its process manager, in both directions;
// none is its end.
const PMI Kind = 'p'

// Kinds of frames from an agent.
const (
	HostReady Kind = 'A' // an Arrival, the first frame
	Started   Kind = 'R' // a Process
	Failed    Kind = 'F' // a Failure: the rank could not be started
	Stdout    Kind = 'o'
	Stderr    Kind = 'e'
	Credit    Kind = 'c' // a number: so many bytes of Stdin are written
	Exited    Kind = 'X' // an Exit; its output may still come
	Note      Kind = 'n' // text for people
	Finished  Kind = 'B' // a Farewell, the last frame
)

// Spec is what an agent is to start.
type Spec struct {
	Host    string   // what the user calls it
	Size    int      // ranks of the whole job
	Environ []string // NAME=VALUE of all ranks, beside the agent's own environment
	Secret  string   // of the port that ranks connect to; without, they inherit a socket
	Ranks   []Rank
	Bind    string // a cpus.Binding

	GraceMillis int // as in Ending, when the launcher ends without a word

	// Peers are addresses and names of the other hosts of the job, the best first; none
	// if its ranks are all on this one. The ranks' own address is the one by which those
	// reach it. Family is 4 or 6 if it has to be of that IP version, and else 0.
	// Here is their own address where the user has named the host by it, or empty.
	Peers  []string
	Family int
	Here   string
}

// HostInfo tells the launcher where an agent's host is.
type HostInfo struct {
	Here  string   // the address that the launcher's ssh came to; empty without ssh
	Addrs []string // of the host's interfaces, without loopback and link-local ones
}

// Rank is one process to start.
type Rank struct {
	Rank    int
	Args    []string // the program and its arguments
	Dir     string
	Environ []string
	Stdin   bool // gets what the launcher reads
}

// StopRequest says how long processes have between SIGTERM and SIGKILL.
type StopRequest struct{ GraceMillis int }

// Process is a rank that was started.
type Process struct{ PID int }

// Failure is why a rank could not be started, and the exit status that a shell
// would have.
type Failure struct {
	Why    string
	Status int
}

// Exit is how a process has ended.
type Exit struct {
	Status int
	Signal int    // that has ended it, or 0
	Name   string // of the signal
	Core   bool
}

// Summary is what an agent has counted.
type Summary struct{ Refused uint64 }

// Bounds. Bytes of ranks are in frames of at most Chunk bytes.
const (
	Chunk     = 32 << 10
	maxBytes  = 16 << 20 // of a Spec with everybody's environment
	headerLen = 1 + 4 + 4
)

// Writer writes frames, from any goroutine.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
	b  []byte
}

// NewWriter makes a writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes a frame in one piece. A line feed follows every frame: srun passes on
// the output of a step line by line.
func (w *Writer) Write(kind Kind, rank int, b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = appendFrame(w.b[:0], kind, rank, b)
	_, err := w.w.Write(w.b)
	return err
}

// WriteJSON writes a frame with a value.
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

// Reader reads frames.
type Reader struct {
	r *bufio.Reader
	b []byte
}

// NewReader makes a reader from r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, Chunk+headerLen)} }

// Next returns the next frame. The bytes are the caller's until the next call. An
// end between frames is io.EOF.
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

// maxNoise is how much a host may say before its agent.
const maxNoise = 64 << 10

// ReadHello reads up to Hello. What was there before, a shell's greeting for example,
// is given to other, at most 64 KiB of it; an end before Hello is io.ErrUnexpectedEOF.
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
