package coll_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
)

// world is a network of ranks in one goroutine at a time: each is a coroutine that
// runs until it waits for a message that is not there. What happens next is drawn
// from a seed, so one seed is one run, or, with a clock, goes by rounds. When
// nothing can happen any more and somebody waits, that is a deadlock.
//
// It watches over memory: what was given to Isend must not change, what was given
// to Irecv must not be touched, scratch memory comes and goes as it should.
type world struct {
	rng   *rand.Rand // nil: by the clock
	ranks []*rank
	mail  mail
	fault func(from, to int) error // of messages that fail

	placements mail // what tells of them
	exposures  []*exposure
	boards     *boards // nil: no memory in common

	runnable []*rank
	matched  []*request // sends that have their receive and come next on their way

	messages, bytes int // sent by all
	glances         int // at what others show
	failures        []string
}

// channel has the messages from one rank to another that wait for their other half.
type channel struct{ sends, recvs []*request }

// mail are the channels, by sender and receiver.
type mail []channel

// request is half a message.
type request struct {
	on         mail
	rank, peer int
	recv       bool
	b, was     []byte // was: what b has to be, until Wait
	posted     int    // round
	number     int    // of the world's sends
	pair       *request
	awaited    bool // by its rank, now
	done       bool
	end        int // round
	err        error
	waited     bool

	place  []byte    // where it is written to, unless it has been
	opened *exposure // of what tells of a placement
}

// rank implements coll.Net.
type rank struct {
	w       *world
	id      int
	yield   func(struct{}) bool
	resume  func() (struct{}, bool)
	stop    func()
	waiting []*request
	missing int  // of waiting
	over    bool // returned
	stopped bool
	err     error
	memory  memory
	sent    int // bytes

	clock, sendFree, recvFree int // rounds
	begun                     []*request

	queue   []*request // receives that whoever sends takes
	pinned  []byte
	exposed *exposure
	number  int // of it
	theirs  map[int]*exposure
}

var errStopped = errors.New("the world has ended")

func newWorld(n int, rng *rand.Rand) *world {
	w := &world{rng: rng, mail: make(mail, n*n), placements: make(mail, n*n)}
	for i := range n {
		w.ranks = append(w.ranks, &rank{w: w, id: i})
	}
	return w
}

func (w *world) failf(format string, args ...any) {
	w.failures = append(w.failures, fmt.Sprintf(format, args...))
}

// run has all ranks run body, and returns what was wrong.
func (w *world) run(body func(r *rank) error) error {
	for _, r := range w.ranks {
		r.resume, r.stop = iter.Pull(func(yield func(struct{}) bool) {
			r.yield = yield
			r.err = body(r)
			r.over = true
		})
		w.runnable = append(w.runnable, r)
	}
	for w.step() {
	}
	if stuck := w.stuck(); stuck != "" {
		w.failf("deadlock:\n%s", stuck)
	}
	for _, r := range w.ranks {
		r.stopped = true
		r.stop()
		switch {
		case r.err != nil && !errors.Is(r.err, errStopped):
			w.failf("rank %d: %v", r.id, r.err)
		case r.err == nil:
			r.checkEnd()
		}
	}
	if len(w.failures) > 0 {
		return errors.New(strings.Join(w.failures, "\n"))
	}
	return nil
}

// checkEnd looks for what a rank has left behind.
func (r *rank) checkEnd() {
	for _, q := range r.begun {
		if !q.waited {
			r.w.failf("rank %d did not wait for %v", r.id, q)
		}
	}
	if n := len(r.memory.out); n > 0 {
		r.w.failf("rank %d kept %d pieces of scratch memory", r.id, n)
	}
}

// step has one thing happen, and reports whether there was one.
func (w *world) step() bool {
	all := len(w.runnable) + len(w.matched)
	if all == 0 {
		return false
	}
	i := 0
	if w.rng != nil {
		i = w.rng.IntN(all)
	} else if len(w.runnable) == 0 { // the clock goes on
		for k, q := range w.matched {
			if c := cmp.Compare(w.begin(q), w.begin(w.matched[i])); c < 0 || c == 0 && q.number < w.matched[i].number {
				i = k
			}
		}
	}
	if i < len(w.runnable) {
		take(&w.runnable, i).resume()
		return true
	}
	w.deliver(take(&w.matched, i-len(w.runnable)))
	return true
}

// take removes an item of a list, whose order does not matter.
func take[T any](list *[]T, i int) T {
	l := *list
	last := len(l) - 1
	item := l[i]
	l[i] = l[last]
	*list = l[:last]
	return item
}

// match brings the two halves together that come next on their way.
func (w *world) match(on mail, from, to int) {
	c := w.channel(on, from, to)
	if len(c.sends) > 0 && len(c.recvs) > 0 && c.sends[0].pair == nil {
		c.sends[0].pair, c.recvs[0].pair = c.recvs[0], c.sends[0]
		w.matched = append(w.matched, c.sends[0])
	}
}

// complete ends half a message, for which its rank may be waiting.
func (w *world) complete(q *request, end int) {
	if q.done {
		return
	}
	q.done, q.end = true, end
	if r := w.ranks[q.rank]; q.awaited {
		if r.missing--; r.missing == 0 {
			w.runnable = append(w.runnable, r)
		}
	}
}

// begin is the round in which a message can be sent: both sides are there, and
// neither sends, or receives, another.
func (w *world) begin(send *request) int {
	return max(send.posted, send.pair.posted, w.ranks[send.rank].sendFree, w.ranks[send.peer].recvFree)
}

// deliver brings a message to its receive.
func (w *world) deliver(send *request) {
	recv := send.pair
	end := w.begin(send) + 1
	w.ranks[send.rank].sendFree, w.ranks[recv.rank].recvFree = end, end
	c := w.channel(send.on, send.rank, recv.rank)
	c.sends, c.recvs = c.sends[1:], c.recvs[1:]
	send.check()
	recv.check()
	switch {
	case recv.opened == nil && len(recv.b) != len(send.was):
		recv.err = fmt.Errorf("rank %d expected %d bytes of %d, %d came", recv.rank, len(recv.b), send.rank, len(send.was))
	case w.fault != nil:
		recv.err = w.fault(send.rank, recv.rank)
	}
	if recv.opened != nil {
		recv.opened.open--
	} else {
		copy(recv.b, send.was)
		recv.was = bytes.Clone(send.was)
	}
	if send.place != nil {
		send.write()
	}
	w.complete(send, end)
	w.complete(recv, end)
	w.match(send.on, send.rank, recv.rank)
}

func (q *request) String() string {
	if q.recv {
		return fmt.Sprintf("%d bytes from rank %d", len(q.b), q.peer)
	}
	return fmt.Sprintf("rank %d to take %d bytes", q.peer, len(q.b))
}

// check finds out whether the rank has touched memory that is the network's.
func (q *request) check() {
	if q.rank >= 0 && q.err == nil && !bytes.Equal(q.b, q.was) {
		q.err = fmt.Errorf("rank %d touched memory of a request for %v", q.rank, q)
	}
}

// stuck tells who waits for whom.
func (w *world) stuck() string {
	var lines []string
	for _, r := range w.ranks {
		if r.over {
			continue
		}
		var what []string
		for _, q := range r.waiting {
			if !q.done {
				what = append(what, q.String())
			}
		}
		if w.boards != nil && w.boards.ranks[r.id].until != nil {
			what = append(what, w.boards.ranks[r.id].what)
		}
		lines = append(lines, fmt.Sprintf("rank %d waits for %s", r.id, strings.Join(what, ", ")))
	}
	if len(lines) == 0 {
		return ""
	}
	for _, r := range w.ranks {
		if r.over {
			lines = append(lines, fmt.Sprintf("rank %d has returned", r.id))
		}
	}
	return strings.Join(lines, "\n")
}

func (w *world) channel(on mail, from, to int) *channel {
	n := len(w.ranks)
	if from < 0 || to < 0 || from >= n || to >= n || from == to {
		panic(fmt.Sprintf("a message from %d to %d", from, to))
	}
	return &on[from*n+to]
}

// rounds is how long it took until the last rank was through.
func (w *world) rounds() (n int) {
	for _, r := range w.ranks {
		n = max(n, r.clock)
	}
	return n
}
