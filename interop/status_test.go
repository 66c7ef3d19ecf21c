//go:build interop && linux

package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
	"github.com/softrnic/softrnic/interop/peer"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// statusCase is something that a does to b, with the outcome at both sides.
type statusCase struct {
	name    string
	a, b    peer.Options
	connect verbs.ConnectOptions
	stray   bool // a is connected to a number that no queue pair has
	run     func(s *stage)

	// aFails and bFails say whether the queue pair ends in the error state.
	aFails, bFails bool

	// arrives is how many receives complete by themselves. With RC they have
	// when a is done; with UC and UD one must wait for them.
	arrives int

	// differs says why a pair does not do what rxe does with rxe, by what the
	// softrnic side is, "a" or "b".
	differs map[string]string
}

// stage is where a case takes place.
type stage struct {
	t            testing.TB
	a, b         peer.End
	sent, posted []string // what was posted, by the number of its request
}

// recv posts a receive at b.
func (s *stage) recv(sges []verbs.SGE) {
	s.t.Helper()
	require.NoError(s.t, s.b.PostRecv(0, uint64(len(s.posted)), sges))
	s.posted = append(s.posted, "receive")
}

// send posts a request at a.
func (s *stage) send(wr verbs.SendWR) {
	s.t.Helper()
	wr.WRID, wr.Flags = uint64(len(s.sent)), verbs.SendSignaled
	require.NoError(s.t, s.a.PostSend(0, wr))
	s.sent = append(s.sent, wr.Opcode.String())
}

// to aims a request at n bytes of b's memory, with n of a's.
func (s *stage) to(op verbs.WROpcode, n int) verbs.SendWR {
	return verbs.SendWR{Opcode: op, SGList: s.a.SGE(0, n), RemoteAddr: s.b.Addr(0), RKey: s.b.RKey()}
}

// wrongKey is another key than r.
func wrongKey(r uint32) uint32 { return r ^ 0x100 }

func statusCases() []statusCase {
	const pages = 8192 // bytes: several packets with an MTU of 4096 and less
	plain := func(op verbs.WROpcode, n int, change func(s *stage, wr *verbs.SendWR)) func(*stage) {
		return func(s *stage) {
			s.recv(s.b.SGE(0, pages))
			wr := s.to(op, n)
			if change != nil {
				change(s, &wr)
			}
			s.send(wr)
			s.send(s.to(verbs.WRSend, 8))
		}
	}
	badKey := func(s *stage, wr *verbs.SendWR) { wr.RKey = wrongKey(wr.RKey) }
	outside := func(s *stage, wr *verbs.SendWR) { wr.RemoteAddr += 64<<10 - 4 }
	badLocal := func(s *stage, wr *verbs.SendWR) { wr.SGList[0].LKey = wrongKey(wr.SGList[0].LKey) }
	short := func(room, n int) func(*stage) {
		return func(s *stage) {
			s.recv(s.b.SGE(0, room))
			s.recv(s.b.SGE(0, room))
			s.send(s.to(verbs.WRSend, n))
			s.send(s.to(verbs.WRSend, 8))
		}
	}
	only := func(f verbs.AccessFlags) peer.Options { return peer.Options{Access: verbs.AccessLocalWrite | f} }
	noAccess := peer.Options{NoQPAccess: true}
	uc, ud := peer.Options{Type: verbs.UC}, peer.Options{Type: verbs.UD}
	impatient := verbs.ConnectOptions{RNRRetry: 2, RetryCnt: 2, Timeout: 12}
	fewRNR := verbs.ConnectOptions{RNRRetry: 2, Timeout: 20} // 4 s: a slow guest must not look silent
	tooShort := map[string]string{"b": "a message that does not fit is a length error here and an invalid request there, as with adapters; rxe calls both an operation error"}
	dropped := map[string]string{"b": "a message that does not fit is dropped, and the queue pair goes on; that of rxe fails"}
	wrongLKey := func(side string) map[string]string {
		return map[string]string{side: "a wrong lkey is a protection error, as ibv_poll_cq(3) has it; rxe calls it an operation error"}
	}
	reads, writes := verbs.WRRDMARead, verbs.WRRDMAWrite
	add := verbs.WRAtomicFetchAdd
	return []statusCase{
		{name: "everything is right", run: plain(writes, pages, nil)},
		{name: "WRITE, wrong rkey", run: plain(writes, 100, badKey), aFails: true, bFails: true},
		{name: "WRITE of several packets, wrong rkey", run: plain(writes, pages, badKey), aFails: true, bFails: true},
		{name: "READ, wrong rkey", run: plain(reads, 100, badKey), aFails: true, bFails: true},
		{name: "FETCH-ADD, wrong rkey", run: plain(add, 8, badKey), aFails: true, bFails: true},
		{name: "WRITE beyond the region", run: plain(writes, 8, outside), aFails: true, bFails: true},
		{name: "READ beyond the region", run: plain(reads, 8, outside), aFails: true, bFails: true},
		{name: "WRITE to a region that is only read", b: only(verbs.AccessRemoteRead), run: plain(writes, 8, nil), aFails: true, bFails: true},
		{name: "READ of a region that is only written", b: only(verbs.AccessRemoteWrite), run: plain(reads, 8, nil), aFails: true, bFails: true},
		{name: "FETCH-ADD in a region without atomics", b: only(verbs.AccessRemoteWrite), run: plain(add, 8, nil), aFails: true, bFails: true},
		{name: "WRITE through a queue pair that allows none", b: noAccess, run: plain(writes, 8, nil), aFails: true, bFails: true},
		{name: "READ through a queue pair that allows none", b: noAccess, run: plain(reads, 8, nil), aFails: true, bFails: true},
		{name: "FETCH-ADD through a queue pair that allows none", b: noAccess, run: plain(add, 8, nil), aFails: true, bFails: true},
		{name: "WRITE of nothing, wrong rkey", run: plain(writes, 0, badKey)},
		{name: "READ of nothing, wrong rkey", run: plain(reads, 0, badKey)},
		{name: "READ where none are served", connect: verbs.ConnectOptions{MaxDestRdAtomic: verbs.Zero}, run: plain(reads, 8, nil), aFails: true, bFails: true},
		{name: "SEND, receive too short", run: short(100, 101), aFails: true, bFails: true, differs: tooShort},
		{name: "SEND of several packets, receive too short", run: short(5000, pages), aFails: true, bFails: true, differs: tooShort},
		{name: "SEND, receive with a wrong lkey", run: func(s *stage) {
			sges := s.b.SGE(0, 100)
			sges[0].LKey = wrongKey(sges[0].LKey)
			s.recv(sges)
			s.recv(s.b.SGE(0, 100))
			s.send(s.to(verbs.WRSend, 100))
			s.send(s.to(verbs.WRSend, 100))
		}, aFails: true, bFails: true, differs: wrongLKey("b")},
		{name: "SEND, wrong lkey", run: plain(verbs.WRSend, 100, badLocal), aFails: true, differs: wrongLKey("a")},
		{name: "WRITE, wrong lkey", run: plain(writes, 100, badLocal), aFails: true, differs: wrongLKey("a")},
		{name: "READ, wrong lkey", run: func(s *stage) {
			wr := s.to(reads, 100)
			badLocal(s, &wr)
			s.send(wr)
		}, aFails: true},
		{name: "SEND, no receive", connect: fewRNR, run: func(s *stage) {
			s.send(s.to(verbs.WRSend, 100))
			s.send(s.to(verbs.WRSend, 100))
		}, aFails: true},
		{name: "WRITE with immediate, no receive", connect: fewRNR, run: func(s *stage) {
			s.send(s.to(verbs.WRRDMAWriteWithImm, 100))
			s.send(s.to(verbs.WRSend, 100))
		}, aFails: true},
		{name: "SEND, receive comes late", run: func(s *stage) {
			s.send(s.to(verbs.WRSend, 100))
			s.send(s.to(verbs.WRSend, 200))
			for range 2 {
				s.recv(s.b.SGE(0, 200))
			}
		}},
		{name: "WRITE with immediate, receive without memory", run: func(s *stage) {
			s.recv(s.b.SGE(0, 0))
			wr := s.to(verbs.WRRDMAWriteWithImm, pages)
			wr.Imm = 0xabcd0123
			s.send(wr)
		}},
		{name: "SEND with invalidate, wrong rkey", connect: impatient, run: plain(verbs.WRSendWithInv, 100, func(s *stage, wr *verbs.SendWR) { wr.InvKey = 0x12345600 }),
			aFails: true, bFails: true,
			differs: map[string]string{"b": "an invalidation that fails is refused; rxe acknowledges the message and then goes silent"}},
		{name: "SEND, nobody has that number", stray: true, connect: impatient, run: func(s *stage) {
			s.send(s.to(verbs.WRSend, 100))
			s.send(s.to(verbs.WRSend, 100))
		}, aFails: true},

		{name: "UC: everything is right", a: uc, b: uc, run: plain(writes, pages, nil), arrives: 1},
		{name: "UC: WRITE, wrong rkey", a: uc, b: uc, run: plain(writes, 100, badKey), arrives: 1},
		{name: "UC: WRITE beyond the region", a: uc, b: uc, run: plain(writes, 8, outside), arrives: 1},
		{name: "UC: SEND, receive too short", a: uc, b: uc, run: short(100, 101), bFails: true, arrives: 1, differs: dropped},
		{name: "UC: SEND, no receive", a: uc, b: uc, run: func(s *stage) { s.send(s.to(verbs.WRSend, 100)) }},
		{name: "UC: SEND, wrong lkey", a: uc, b: uc, run: plain(verbs.WRSend, 100, badLocal), aFails: true, differs: wrongLKey("a")},
		{name: "UD: everything is right", a: ud, b: ud, run: short(140, 100), arrives: 2},
		{name: "UD: SEND, receive too short", a: ud, b: ud, run: short(140, 101), bFails: true, arrives: 1, differs: dropped},
		{name: "UD: SEND, no receive", a: ud, b: ud, run: func(s *stage) { s.send(s.to(verbs.WRSend, 100)) }},
		{name: "UD: SEND, wrong lkey", a: ud, b: ud, run: plain(verbs.WRSend, 100, badLocal), aFails: true, differs: wrongLKey("a")},
	}
}

// play runs a case with a pair of adapters and tells what completes, by side.
func play(t *testing.T, g *lab.Guest, k kind, c statusCase) (a, b []string) {
	s := &stage{t: t}
	s.a = open(t, g, k.a, families[0], rnic.Options{}, c.a)
	s.b = open(t, g, k.b, families[0], rnic.Options{}, c.b)
	if c.stray {
		to := s.b.Endpoint(0)
		to.QPN ^= 0xA5A5A5
		c.connect.MTU = verbs.MTU4096
		require.NoError(t, s.a.Connect(0, to, c.connect))
		require.NoError(t, s.b.Connect(0, s.a.Endpoint(0), c.connect))
	} else {
		require.NoError(t, peer.Connect(s.a, s.b, 1, c.connect))
	}
	c.run(s)
	a = tell(poll(t, s.a, len(s.sent)), s.sent)
	a = append(a, "queue pair "+settle(t, s.a, c.aFails))
	state := settle(t, s.b, c.bFails)
	arrived := poll(t, s.b, c.arrives)
	require.NoError(t, s.b.Fail(0)) // so that all receives complete
	b = tell(append(arrived, poll(t, s.b, len(s.posted)-c.arrives)...), s.posted)
	return a, append(b, "queue pair "+state)
}

// settle returns the state of the queue pair once it is what a case predicts:
// the error state may come a moment after the completion. Another state is the
// caller's to complain about.
func settle(t *testing.T, end peer.End, fails bool) string {
	t.Helper()
	for begin := time.Now(); ; {
		state, err := end.State(0)
		require.NoError(t, err)
		if (state == verbs.StateErr) == fails || time.Since(begin) > 5*time.Second {
			return state.String()
		}
	}
}

func tell(wcs []verbs.WC, names []string) (list []string) {
	for _, wc := range wcs {
		line := fmt.Sprintf("%s: %v", names[wc.WRID], wc.Status)
		if wc.Status == verbs.WCSuccess {
			line += fmt.Sprintf(" %v", wc.Opcode)
			if wc.Opcode.IsRecv() {
				line += fmt.Sprintf(" %d bytes", wc.ByteLen)
				if wc.Flags&verbs.WCWithImm != 0 {
					line += fmt.Sprintf(" imm %#x", wc.Imm)
				}
			}
		}
		list = append(list, line)
	}
	return list
}

// TestStatus: errors have the same completion status at the same side as
// between two rxe.
func TestStatus(t *testing.T) {
	g := lab.Need(t)
	for _, c := range statusCases() {
		t.Run(c.name, func(t *testing.T) {
			var refA, refB []string
			t.Run(linuxAlone.String(), func(t *testing.T) {
				refA, refB = play(t, g, linuxAlone, c)
				statusT.Set("a", strings.Join(refA, ", "), c.name)
				statusT.Set("b", strings.Join(refB, ", "), c.name)
			})
			for _, k := range kinds {
				side := "b"
				if k.a == "softrnic" {
					side = "a"
				}
				why := c.differs[side]
				text := "same"
				cell(t, statusT, k.String(), []string{c.name}, k.String(), func(t *testing.T) {
					a, b := play(t, g, k, c)
					if why == "" {
						require.Equal(t, refA, a, "a")
						require.Equal(t, refB, b, "b")
						return
					}
					require.False(t, slices.Equal(refA, a) && slices.Equal(refB, b), "no difference any more: %s", why)
					text = fmt.Sprintf("a: %s; b: %s. %s", strings.Join(a, ", "), strings.Join(b, ", "), why)
				})
				statusT.Set(k.String(), text, c.name)
			}
		})
	}
}
