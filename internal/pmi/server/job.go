package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// Options describe a job.
type Options struct {
	Size  int    // ranks
	ID    string // the job's name, without blanks; another for every job
	Nodes []int  // the host of each rank, counted from 0; nil is all on one
	Apps  []int  // the program of each rank, counted from 0; nil is all the same

	// Notify is told what happens to the job. It is called by Serve, Feed and
	// Ended, in their goroutine.
	Notify func(Event)
}

// State is how far a rank is, in the manager's eyes.
type State int

// The states.
const (
	NotJoined State = iota // has said nothing
	Running                // has joined
	AtFence                // waits for the others
	Finalized              // needs the manager no more
)

// String says the state in words.
func (s State) String() string {
	return [...]string{"has not joined", "runs", "waits at the fence", "is finalized"}[s]
}

// EventKind says what has happened.
type EventKind int

// What can happen.
const (
	Abort EventKind = iota // Rank ends the job with Code and Why
	Stuck                  // Waiting are at a fence that Gone will not come to; may be said again
)

// Event is what happens to a job and has to have consequences.
type Event struct {
	Kind EventKind
	Rank int
	Code int
	Why  string

	Waiting, Missing []int
}

// RankState is how far a rank is.
type RankState struct {
	Rank   int
	State  State
	Fences int // it has passed
}

// Job is a job that is managed. All methods may be called from any goroutine.
type Job struct {
	notify func(Event)

	mu       sync.Mutex
	book     *kvs
	sessions []*Session
}

// New makes the books of a job.
func New(o Options) (*Job, error) {
	if o.Size < 1 {
		return nil, fmt.Errorf("a job of %d ranks", o.Size)
	}
	if o.ID == "" || len(o.ID) >= maxName || strings.ContainsAny(o.ID, " =;\\\n") {
		return nil, fmt.Errorf("a job cannot have the name %q", o.ID)
	}
	if o.Nodes == nil {
		o.Nodes = make([]int, o.Size)
	}
	if len(o.Nodes) != o.Size || o.Apps != nil && len(o.Apps) != o.Size || slices.Min(o.Nodes) < 0 || slices.Max(o.Nodes) >= o.Size {
		return nil, fmt.Errorf("nodes %v and programs %v are not those of %d ranks", o.Nodes, o.Apps, o.Size)
	}
	notify := o.Notify
	if notify == nil {
		notify = func(Event) {}
	}
	return &Job{notify: notify, book: newKVS(o), sessions: make([]*Session, o.Size)}, nil
}

// Session is the connection of one rank.
type Session struct {
	job  *Job
	rank int
	send func([]byte)

	buf []byte
	err error
}

// Attach makes the session of a rank. What the rank is to be sent is given to
// send, which must neither wait nor call the job: it owns the bytes. A rank
// has one session in a job.
func (j *Job) Attach(rank int, send func([]byte)) (*Session, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if rank < 0 || rank >= len(j.sessions) {
		return nil, fmt.Errorf("there is no rank %d in a job of %d", rank, len(j.sessions))
	}
	if j.sessions[rank] != nil {
		return nil, fmt.Errorf("rank %d is connected already", rank)
	}
	s := &Session{job: j, rank: rank, send: send}
	j.sessions[rank] = s
	return s, nil
}

// Feed takes bytes that the rank has sent. An error says what in them is not PMI;
// the session takes nothing any more, and its rank should be told by the end of
// the connection.
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

// sendReplies sends replies. The caller has the lock, so that they leave in order.
func (j *Job) sendReplies(o outcome) {
	for _, r := range o.replies {
		b, err := r.message.Append(nil, r.version)
		if err != nil { // what one version can say and the other cannot
			b, _ = wire.New(r.message.Cmd, "rc", "-1", "found", "FALSE", "msg", "cannot_be_said_in_"+r.version.String()).Append(nil, r.version)
		}
		if s := j.sessions[r.rank]; s != nil {
			s.send(b)
		}
	}
}

// ProcessEnded says that the process of a rank has ended: it comes to no fence any more.
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

// Ranks says how far each rank is.
func (j *Job) Ranks() []RankState {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := make([]RankState, len(j.book.ranks))
	for i, r := range j.book.ranks {
		list[i] = RankState{Rank: i, State: r.state, Fences: j.book.fences}
	}
	return list
}
