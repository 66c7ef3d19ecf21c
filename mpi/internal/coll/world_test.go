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

// world is a network of ranks of which one runs at a time: each is a coroutine that
// runs until it waits for a message that has not arrived. The next event is drawn
// with a seed, so that a seed determines the run, or, with a clock, is the earliest
// one. If no event is possible and a rank waits, that is a deadlock.
//
// It checks memory: the buffer of Isend must not change, that of Irecv must not be
// accessed, and scratch memory must be freed.
type world struct {
	rng   *rand.Rand // nil: with a clock
	ranks []*rank
	mail  mail
	fault func(from, to int) error // decides which messages fail

	placements mail // notifications of RDMA writes
	exposures  []*exposure
	boards     *boards // nil: no shared memory

	runnable []*rank
	matched  []*request // sends that are matched with a receive and can be delivered

	messages, bytes int // sent by all ranks
	glances         int // reads of shared memory
	failures        []string
}

// channel has the unmatched sends and receives from one rank to another.
type channel struct{ sends, recvs []*request }

// mail are the channels, by sender and receiver.
type mail []channel

// request is a send or a receive.
type request struct {
	on         mail
	rank, peer int
	recv       bool
	b, was     []byte // was: content that b must have until Wait
	posted     int    // round
	number     int    // of the world's sends
	pair       *request
	awaited    bool // the rank waits for it now
	done       bool
	end        int // round
	err        error
	waited     bool

	place  []byte    // destination of an RDMA write that is not done yet
	opened *exposure // of a notification of an RDMA write
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

	queue   []*request // receives for any sender
	pinned  []byte
	exposed *exposure
	number  int // of exposed
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

// run runs body on all ranks, and returns the errors.
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
	if stuck := w.describeWaiters(); stuck != "" {
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

// checkEnd checks that the rank has waited for all requests and freed all memory.
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

// step executes one event, and reports whether there was one.
func (w *world) step() bool {
	all := len(w.runnable) + len(w.matched)
	if all == 0 {
		return false
	}
	i := 0
	if w.rng != nil {
		i = w.rng.IntN(all)
	} else if len(w.runnable) == 0 { // the clock advances
		for k, q := range w.matched {
			if c := cmp.Compare(w.startRound(q), w.startRound(w.matched[i])); c < 0 || c == 0 && q.number < w.matched[i].number {
				i = k
			}
		}
	}
	if i < len(w.runnable) {
		removeAt(&w.runnable, i).resume()
		return true
	}
	w.deliver(removeAt(&w.matched, i-len(w.runnable)))
	return true
}

// removeAt removes an item from a list whose order does not matter.
func removeAt[T any](list *[]T, i int) T {
	l := *list
	last := len(l) - 1
	item := l[i]
	l[i] = l[last]
	*list = l[:last]
	return item
}

// match matches the first send and the first receive of a channel.
func (w *world) match(on mail, from, to int) {
	c := w.channel(on, from, to)
	if len(c.sends) > 0 && len(c.recvs) > 0 && c.sends[0].pair == nil {
		c.sends[0].pair, c.recvs[0].pair = c.recvs[0], c.sends[0]
		w.matched = append(w.matched, c.sends[0])
	}
}

// complete completes a send or a receive, for which its rank may wait.
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

// startRound returns the round in which a message can be sent: both sides have posted it, and
// neither sends, or receives, another.
func (w *world) startRound(send *request) int {
	return max(send.posted, send.pair.posted, w.ranks[send.rank].sendFree, w.ranks[send.peer].recvFree)
}

// deliver delivers a message to its receive.
func (w *world) deliver(send *request) {
	recv := send.pair
	end := w.startRound(send) + 1
	w.ranks[send.rank].sendFree, w.ranks[recv.rank].recvFree = end, end
	c := w.channel(send.on, send.rank, recv.rank)
	c.sends, c.recvs = c.sends[1:], c.recvs[1:]
	send.check()
	recv.check()
	switch {
	case recv.opened == nil && len(recv.b) != len(send.was):
		recv.err = fmt.Errorf("rank %d expected %d bytes of %d, %d arrived", recv.rank, len(recv.b), send.rank, len(send.was))
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

// check checks that the rank has not changed memory that the network uses.
func (q *request) check() {
	if q.rank >= 0 && q.err == nil && !bytes.Equal(q.b, q.was) {
		q.err = fmt.Errorf("rank %d touched memory of a request for %v", q.rank, q)
	}
}

// describeWaiters describes the ranks that wait, "" if there is none.
func (w *world) describeWaiters() string {
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

// rounds returns the number of rounds until the last rank was done.
func (w *world) rounds() (n int) {
	for _, r := range w.ranks {
		n = max(n, r.clock)
	}
	return n
}
