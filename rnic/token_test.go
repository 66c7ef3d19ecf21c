package rnic

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The model of a shard explores every interleaving of up to three goroutines that want the token,
// and of the packets for them. Each step is one access to shared state: a transition of the real
// token, or a read of it. The steps of a goroutine follow wait.go, service.go and seizeToken.

// A modelState is the state of all goroutines and of what they share.
type modelState struct {
	word      uint32
	woken     bool // the socket's wake-up, which stays until a sleeper consumes it
	packet    bool // a packet that completes all waits is in the socket
	baton     bool
	followers int8
	procs     [3]proc
	unread    int8 // packets that have not arrived yet
	noService bool // Options.NoService: no token is recalled, each release offers the baton
}

// A proc is a goroutine of the model.
type proc struct {
	kind      procKind
	at        place
	done      bool // a waiter: its completion has come
	told      bool // a waiter: and it has been woken for it while parked
	displaced bool
	hasBaton  bool
	rounds    int8 // a poller: number of polls left
}

type procKind int8

const (
	procNone procKind = iota
	procPoller
	procWaiter
	procService
	procSeizer
)

// A place is the next step of a goroutine.
type place int8

const (
	start      place = iota
	holding          // with the token, awake
	beforeNap        // before token.beginSleep
	napping          // after token.beginSleep, before blocking
	blocked          // in the socket
	afterNap         // before token.endSleep
	releasing        // before token.release
	offering         // before offerBaton
	requesting       // a waiter that has found the token taken
	recalling        // in requestHandover, before token.recall
	requested        // behind it
	following        // before it counts itself as a follower
	counted
	displacing // has found the service at the socket, before token.displace
	parking    // before the last look at the token
	parked
	unparked // before it leaves the followers
	seizeTry // has counted itself as a seizer
	seized
	finished
)

var placeNames = [...]string{"start", "holding", "beforeNap", "napping", "blocked", "afterNap", "releasing", "offering", "requesting", "recalling", "requested", "following", "counted", "displacing", "parking", "parked", "unparked", "seizeTry", "seized", "finished"}

func (m modelState) String() string {
	s, seizers := splitTokenWord(m.word)
	var b strings.Builder
	fmt.Fprintf(&b, "token %v, seizers %d, woken %v, packet %v, baton %v, followers %d;", s, seizers, m.woken, m.packet, m.baton, m.followers)
	for _, p := range m.procs {
		if p.kind != procNone {
			fmt.Fprintf(&b, " %v at %s done %v;", [...]string{"", "poller", "waiter", "service", "seizer"}[p.kind], placeNames[p.at], p.done)
		}
	}
	return b.String()
}

// token runs f on the real token in the state of m.
func (m *modelState) token(f func(*token) bool) bool {
	var t token
	t.word.Store(m.word)
	result := f(&t)
	m.word = t.word.Load()
	return result
}

func (m *modelState) is(f func(*token) bool) bool { return m.token(f) }

// wakeIf wakes the socket if a transition asks for it.
func (m *modelState) wakeIf(wake bool) { m.woken = m.woken || wake }

// readSocket completes the waits if the packet is there.
func (m *modelState) readSocket() {
	if !m.packet {
		return
	}
	m.packet = false
	for i := range m.procs {
		if m.procs[i].kind == procWaiter {
			m.procs[i].done, m.procs[i].told = true, true
		}
	}
}

func (m *modelState) offerBaton() {
	if m.followers > 0 {
		m.baton = true
	}
}

// steps returns the states that a step of goroutine i leads to.
func (m modelState) steps(i int) (next []modelState) {
	p := &m.procs[i]
	do := func(f func(m *modelState, p *proc)) {
		n := m
		f(&n, &n.procs[i])
		next = append(next, n)
	}
	switch p.at {
	case start:
		do(func(m *modelState, p *proc) { m.begin(p) })
	case holding:
		do(func(m *modelState, p *proc) { m.hold(p) })
	case beforeNap:
		do(func(m *modelState, p *proc) {
			if p.at = napping; !m.token((*token).beginSleep) {
				p.displaced, p.at = !m.noService, releasing
			}
		})
	case napping:
		do(func(m *modelState, p *proc) {
			if p.at = blocked; p.done || !m.is((*token).isAsleep) {
				p.at = afterNap
			}
		})
	case blocked:
		if m.woken || m.packet {
			do(func(m *modelState, p *proc) { m.woken, p.at = false, afterNap })
		}
	case afterNap:
		do(func(m *modelState, p *proc) {
			if p.at = holding; m.token((*token).endSleep) {
				p.displaced, p.at = !m.noService, releasing
			}
		})
	case releasing:
		do(func(m *modelState, p *proc) {
			m.token(func(t *token) bool { t.release(); return true })
			p.at = offering
		})
	case offering:
		do(func(m *modelState, p *proc) {
			if p.kind != procPoller || m.noService {
				m.offerBaton()
			}
			m.leave(p)
		})
	case requesting:
		do(func(_ *modelState, p *proc) { p.at = following })
		if !p.displaced && m.is((*token).isServing) {
			do(func(_ *modelState, p *proc) { p.at = recalling })
		}
	case recalling:
		do(func(m *modelState, p *proc) { m.wakeIf(m.token((*token).recall)); p.at = requested })
	case requested: // the handover times out, or the service has released the token
		do(func(_ *modelState, p *proc) { p.at = following })
		if !m.is((*token).isServing) {
			do(func(_ *modelState, p *proc) { p.at = start })
		}
	case following:
		do(func(m *modelState, p *proc) { m.followers++; p.at = counted })
	case counted:
		do(func(m *modelState, p *proc) {
			if p.at = parking; m.is((*token).isServing) {
				p.at = displacing
			}
		})
	case displacing:
		do(func(m *modelState, p *proc) { m.wakeIf(m.token((*token).displace)); p.at = parking })
	case parking:
		do(func(m *modelState, p *proc) {
			if p.at = parked; !p.displaced && m.is((*token).isFree) || p.done {
				p.at = unparked
			}
		})
	case parked:
		if p.told {
			do(func(m *modelState, p *proc) { p.told, p.at = false, unparked })
		}
		if m.baton {
			do(func(m *modelState, p *proc) { m.baton, p.hasBaton, p.at = false, true, unparked })
		}
	case unparked:
		do(func(m *modelState, p *proc) { m.followers--; p.displaced, p.at = false, start })
	case seizeTry:
		do(func(m *modelState, p *proc) {
			if m.token((*token).seize) {
				p.at = seized
				return
			}
			m.wakeIf(m.token((*token).displace))
		})
	case seized:
		do(func(m *modelState, p *proc) {
			m.token(func(t *token) bool { t.removeSeizer(); return true })
			p.at = releasing
		})
	}
	return next
}

// begin is the first step of a goroutine.
func (m *modelState) begin(p *proc) {
	switch p.kind {
	case procPoller:
		switch {
		case p.rounds == 0:
			p.at = finished
		case m.token(func(t *token) bool { return t.acquire(tokenPolling) }):
			p.at = holding
		default:
			if !m.noService {
				m.wakeIf(m.token((*token).recall))
			}
			p.rounds--
		}
	case procWaiter:
		switch {
		case p.done:
			p.at = finished
			if p.hasBaton {
				m.offerBaton()
			}
		case !p.displaced && m.token(func(t *token) bool { return t.acquire(tokenLeading) }):
			p.hasBaton, p.at = false, holding
		default:
			p.at = requesting
		}
	case procService:
		if m.token(func(t *token) bool { return t.acquire(tokenServing) }) {
			p.at = holding
		}
	case procSeizer:
		m.token(func(t *token) bool { t.addSeizer(); return true })
		p.at = seizeTry
	}
}

// hold is one round of the holder of the token.
func (m *modelState) hold(p *proc) {
	m.readSocket()
	switch {
	case p.kind == procPoller, p.done, m.is((*token).hasSeizers),
		p.kind == procService && (m.is((*token).isRecalled) || m.followers > 0):
		p.at = releasing
	default:
		p.at = beforeNap
	}
}

// leave is the step behind the release of the token.
func (m *modelState) leave(p *proc) {
	switch p.kind {
	case procPoller:
		p.rounds--
		p.at = start
	case procService:
		p.displaced, p.at = false, start
	case procWaiter:
		p.at = start
	case procSeizer:
		p.at = finished
	}
}

// successors returns the states that one step leads to.
func (m modelState) successors() (next []modelState) {
	for i := range m.procs {
		next = append(next, m.steps(i)...)
	}
	if m.unread > 0 && !m.packet {
		n := m
		n.unread--
		n.packet = true
		next = append(next, n)
	}
	return next
}

// check returns what is wrong with a state by itself.
func (m modelState) check() string {
	holders, seizers := 0, 0
	for _, p := range m.procs {
		switch p.at {
		case holding, beforeNap, napping, blocked, afterNap, releasing:
			holders++
		case seized:
			holders++
			seizers++
		case seizeTry:
			seizers++
		}
	}
	s, n := splitTokenWord(m.word)
	switch {
	case s > tokenSeized:
		return "no such state"
	case holders > 1:
		return "two goroutines hold the token"
	case holders == 0 != (s == tokenFree):
		return "the state does not say whether the token is held"
	case int(n) != seizers:
		return "wrong number of seizers"
	}
	return ""
}

// over reports whether all goroutines have come to their end. The service may run on.
func (m modelState) over() bool {
	for _, p := range m.procs {
		if p.kind != procNone && p.kind != procService && p.at != finished {
			return false
		}
	}
	return true
}

// isUnserved reports whether all waiters sleep beside a packet that nobody has been told to read.
func (m modelState) isUnserved() bool {
	waiters := 0
	for _, p := range m.procs {
		switch {
		case p.kind == procWaiter && p.at == parked && !p.told:
			waiters++
		case p.kind == procService && p.at == start, p.at == finished:
		default:
			return false
		}
	}
	return waiters > 0 && m.packet && !m.baton
}

// TestTokenInterleavings checks, for two and three goroutines of each kind, that in every
// interleaving at most one holds the token, that waiters whom nobody displaces do not all sleep
// beside a packet until the monitor looks, and that from every state all can still come to their
// end: no wake-up is lost.
func TestTokenInterleavings(t *testing.T) {
	kinds := []procKind{procPoller, procWaiter, procService, procSeizer}
	total := 0
	for a := range kinds {
		for b := a; b < len(kinds); b++ {
			for c := b; c <= len(kinds); c++ {
				list := [3]procKind{kinds[a], kinds[b]}
				if c < len(kinds) {
					list[2] = kinds[c]
				}
				total += explore(t, list)
			}
		}
	}
	t.Logf("%d states", total)
	require.Greater(t, total, 10_000)
}

func explore(t *testing.T, kinds [3]procKind) int {
	first := modelState{}
	services := 0
	for i, k := range kinds {
		first.procs[i].kind = k
		switch k {
		case procNone:
			first.procs[i].at = finished
		case procPoller:
			first.procs[i].rounds = 2
		case procWaiter:
			first.unread = 1
		case procService:
			services++
		}
	}
	if services > 1 { // a shard has one
		return 0
	}
	first.noService = services == 0
	// A displaced waiter leaves the packet to the poller or seizer, and they to the service.
	alone := !slices.Contains(kinds[:], procPoller) && !slices.Contains(kinds[:], procSeizer)
	reached := map[modelState]modelState{first: first} // and the state before it
	queue := []modelState{first}
	before := map[modelState][]modelState{}
	for len(queue) > 0 {
		m := queue[0]
		queue = queue[1:]
		if wrong := m.check(); wrong != "" {
			t.Fatalf("%v: %s\n%s", kinds, wrong, trace(reached, m))
		}
		if alone && m.isUnserved() {
			t.Fatalf("%v: all waiters sleep beside a packet\n%s", kinds, trace(reached, m))
		}
		for _, n := range m.successors() {
			before[n] = append(before[n], m)
			if _, known := reached[n]; !known {
				reached[n] = m
				queue = append(queue, n)
			}
		}
	}
	// Go back from the ends: the other states cannot come to one.
	good := map[modelState]bool{}
	for m := range reached {
		if m.over() {
			good[m] = true
			queue = append(queue, m)
		}
	}
	for len(queue) > 0 {
		m := queue[0]
		queue = queue[1:]
		for _, b := range before[m] {
			if !good[b] {
				good[b] = true
				queue = append(queue, b)
			}
		}
	}
	for m := range reached {
		if !good[m] {
			t.Fatalf("%v: a goroutine waits forever\n%s", kinds, trace(reached, m))
		}
	}
	return len(reached)
}

// trace returns the steps that lead to m.
func trace(reached map[modelState]modelState, m modelState) string {
	var list []string
	for list = append(list, m.String()); reached[m] != m; m = reached[m] {
		list = append(list, reached[m].String())
	}
	var b strings.Builder
	for i := len(list) - 1; i >= 0; i-- {
		b.WriteString(list[i] + "\n")
	}
	return b.String()
}
