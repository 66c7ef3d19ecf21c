package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// Options are the parameters of a job.
type Options struct {
	Size  int    // ranks
	ID    string // name of the job, unique and without blanks
	Nodes []int  // index of the host of each rank, from 0; nil is one host
	Apps  []int  // index of the program of each rank, from 0; nil is one program

	// Notify receives the events of the job. Serve, Feed and ProcessEnded call it in
	// their goroutine.
	Notify func(Event)
}

// A State is the state of a rank.
type State int

// The states.
const (
	NotJoined State = iota // no message yet
	Running                // has joined
	AtFence                // waits for the other ranks
	Finalized              // has ended the use of the manager
)

// String returns the state in words.
func (s State) String() string {
	return [...]string{"has not joined", "runs", "waits at the fence", "is finalized"}[s]
}

// An EventKind is the kind of an Event.
type EventKind int

// The kinds of events.
const (
	Abort EventKind = iota // Rank aborts the job with Code and Why
	Stuck                  // Waiting are at a fence that Missing cannot enter; may be repeated
)

// An Event is an event of a job that the launcher must handle.
type Event struct {
	Kind EventKind
	Rank int
	Code int
	Why  string

	Waiting, Missing []int
}

// A RankState is the state of a rank.
type RankState struct {
	Rank   int
	State  State
	Fences int // fences completed
}

// A Job is a managed job. All methods are safe for concurrent use.
type Job struct {
	notify func(Event)

	mu       sync.Mutex
	book     *kvs
	sessions []*Session
}

// New returns a job.
func New(o Options) (*Job, error) {
	if o.Size < 1 {
		return nil, fmt.Errorf("job: %d ranks", o.Size)
	}
	if o.ID == "" || len(o.ID) >= maxName || strings.ContainsAny(o.ID, " =;\\\n") {
		return nil, fmt.Errorf("job: invalid ID %q", o.ID)
	}
	if o.Nodes == nil {
		o.Nodes = make([]int, o.Size)
	}
	if len(o.Nodes) != o.Size || o.Apps != nil && len(o.Apps) != o.Size || slices.Min(o.Nodes) < 0 || slices.Max(o.Nodes) >= o.Size {
		return nil, fmt.Errorf("job: nodes %v and programs %v do not fit %d ranks", o.Nodes, o.Apps, o.Size)
	}
	notify := o.Notify
	if notify == nil {
		notify = func(Event) {}
	}
	return &Job{notify: notify, book: newKVS(o), sessions: make([]*Session, o.Size)}, nil
}

// A Session is the connection of one rank.
type Session struct {
	job  *Job
	rank int
	send func([]byte)

	buf []byte
	err error
}

// Attach creates the session of a rank. send transmits bytes to the rank; it owns them
// and must neither block nor call the job. A rank has one session per job.
func (j *Job) Attach(rank int, send func([]byte)) (*Session, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if rank < 0 || rank >= len(j.sessions) {
		return nil, fmt.Errorf("attach: rank %d out of range [0, %d)", rank, len(j.sessions))
	}
	if j.sessions[rank] != nil {
		return nil, fmt.Errorf("attach: rank %d: already connected", rank)
	}
	s := &Session{job: j, rank: rank, send: send}
	j.sessions[rank] = s
	return s, nil
}

// Feed handles bytes received from the rank. After an error, which describes the
// protocol violation, the session ignores all input, and the caller should close the
// connection.
func (s *Session) Feed(p []byte) error {
	j := s.job
	j.mu.Lock()
	var events []Event
	s.buf = append(s.buf, p...)
	for s.err == nil {
		m, n, err := wire.Next(s.buf)
		if err == nil && n == 0 {
			break
		}
		var o outcome
		if err == nil {
			s.buf = s.buf[n:]
			o, err = j.book.handleMessage(s.rank, m)
		}
		if err != nil {
			s.err = fmt.Errorf("rank %d: %w", s.rank, err)
		}
		j.sendReplies(o)
		events = append(events, o.events...)
	}
	if s.err != nil {
		s.buf = nil
	}
	err := s.err
	j.mu.Unlock()
	for _, e := range events {
		j.notify(e)
	}
	return err
}

// sendReplies sends replies. The caller holds the lock, so that they are sent in order.
func (j *Job) sendReplies(o outcome) {
	for _, r := range o.replies {
		b, err := r.message.Append(nil, r.version)
		if err != nil { // not representable in this version
			b, _ = wire.New(r.message.Cmd, "rc", "-1", "found", "FALSE", "msg", "value_not_representable_in_"+r.version.String()).Append(nil, r.version)
		}
		if s := j.sessions[r.rank]; s != nil {
			s.send(b)
		}
	}
}

// ProcessEnded reports that the process of a rank has ended: it cannot enter a fence
// any more.
func (j *Job) ProcessEnded(rank int) {
	j.mu.Lock()
	var o outcome
	j.book.markEnded(rank, &o)
	j.sendReplies(o)
	j.mu.Unlock()
	for _, e := range o.events {
		j.notify(e)
	}
}

// Ranks returns the state of each rank.
func (j *Job) Ranks() []RankState {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := make([]RankState, len(j.book.ranks))
	for i, r := range j.book.ranks {
		list[i] = RankState{Rank: i, State: r.state, Fences: j.book.fences}
	}
	return list
}
