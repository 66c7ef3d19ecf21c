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

// statusCase is a sequence of requests of a to b, with the outcome at both sides.
type statusCase struct {
	name    string
	a, b    peer.Options
	connect verbs.ConnectOptions
	stray   bool // a is connected to a QPN that no queue pair has
	run     func(s *stage)

	// aFails and bFails report whether the queue pair ends in the error state.
	aFails, bFails bool

	// arrives is the number of receives that complete before the queue pair of b fails.
	// With RC they are complete when a is done; with UC and UD the test waits for them.
	arrives int

	// differs is the reason why a pair behaves otherwise than two rxe, by the side of
	// softrnic, "a" or "b".
	differs map[string]string
}

// stage is a connected pair on which a case runs.
type stage struct {
	t            testing.TB
	a, b         peer.Side
	sent, posted []string // names of the posted requests, by WRID
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

// request returns a request with n bytes of a's memory and n of b's.
func (s *stage) request(op verbs.WROpcode, n int) verbs.SendWR {
	return verbs.SendWR{Opcode: op, SGList: s.a.SGE(0, n), RemoteAddr: s.b.Addr(0), RKey: s.b.RKey()}
}

// wrongKey returns a key other than r.
func wrongKey(r uint32) uint32 { return r ^ 0x100 }

func statusCases() []statusCase {
	const pages = 8192 // bytes: several packets with an MTU of 4096 and less
	plain := func(op verbs.WROpcode, n int, change func(s *stage, wr *verbs.SendWR)) func(*stage) {
		return func(s *stage) {
			s.recv(s.b.SGE(0, pages))
			wr := s.request(op, n)
			if change != nil {
				change(s, &wr)
			}
			s.send(wr)
			s.send(s.request(verbs.WRSend, 8))
		}
	}
	badKey := func(s *stage, wr *verbs.SendWR) { wr.RKey = wrongKey(wr.RKey) }
	outside := func(s *stage, wr *verbs.SendWR) { wr.RemoteAddr += 64<<10 - 4 }
	badLocal := func(s *stage, wr *verbs.SendWR) { wr.SGList[0].LKey = wrongKey(wr.SGList[0].LKey) }
	short := func(room, n int) func(*stage) {
		return func(s *stage) {
			s.recv(s.b.SGE(0, room))
			s.recv(s.b.SGE(0, room))
			s.send(s.request(verbs.WRSend, n))
			s.send(s.request(verbs.WRSend, 8))
		}
	}
	only := func(f verbs.AccessFlags) peer.Options { return peer.Options{Access: verbs.AccessLocalWrite | f} }
	noAccess := peer.Options{NoQPAccess: true}
	uc, ud := peer.Options{Type: verbs.UC}, peer.Options{Type: verbs.UD}
	impatient := verbs.ConnectOptions{RNRRetries: 2, Retries: 2, AckTimeout: verbs.AckTimeout(12)}
	fewRNR := verbs.ConnectOptions{RNRRetries: 2, AckTimeout: 4 * time.Second} // a slow guest must not look silent
	tooShort := map[string]string{"b": "A message longer than its receive is a length error at the receiver and an invalid request at the sender, as with hardware; rxe has an operation error at both."}
	dropped := map[string]string{"b": "softrnic drops a message longer than its receive, and its queue pair stays in RTS; that of rxe fails."}
	wrongLKey := func(side string) map[string]string {
		return map[string]string{side: "A wrong lkey is a protection error, as in ibv_poll_cq(3); with rxe it is an operation error."}
	}
	reads, writes := verbs.WRRDMARead, verbs.WRRDMAWrite
	add := verbs.WRAtomicFetchAdd
	return []statusCase{
		{name: "valid request", run: plain(writes, pages, nil)},
		{name: "WRITE, wrong rkey", run: plain(writes, 100, badKey), aFails: true, bFails: true},
		{name: "WRITE of several packets, wrong rkey", run: plain(writes, pages, badKey), aFails: true, bFails: true},
		{name: "READ, wrong rkey", run: plain(reads, 100, badKey), aFails: true, bFails: true},
		{name: "FETCH-ADD, wrong rkey", run: plain(add, 8, badKey), aFails: true, bFails: true},
		{name: "WRITE beyond the region", run: plain(writes, 8, outside), aFails: true, bFails: true},
		{name: "READ beyond the region", run: plain(reads, 8, outside), aFails: true, bFails: true},
		{name: "WRITE to a region with REMOTE_READ only", b: only(verbs.AccessRemoteRead), run: plain(writes, 8, nil), aFails: true, bFails: true},
		{name: "READ of a region with REMOTE_WRITE only", b: only(verbs.AccessRemoteWrite), run: plain(reads, 8, nil), aFails: true, bFails: true},
		{name: "FETCH-ADD in a region without atomics", b: only(verbs.AccessRemoteWrite), run: plain(add, 8, nil), aFails: true, bFails: true},
		{name: "WRITE, not permitted by the queue pair", b: noAccess, run: plain(writes, 8, nil), aFails: true, bFails: true},
		{name: "READ, not permitted by the queue pair", b: noAccess, run: plain(reads, 8, nil), aFails: true, bFails: true},
		{name: "FETCH-ADD, not permitted by the queue pair", b: noAccess, run: plain(add, 8, nil), aFails: true, bFails: true},
		{name: "WRITE of 0 bytes, wrong rkey", run: plain(writes, 0, badKey)},
		{name: "READ of 0 bytes, wrong rkey", run: plain(reads, 0, badKey)},
		{name: "READ, max_dest_rd_atomic 0", connect: verbs.ConnectOptions{MaxDestRdAtomic: -1}, run: plain(reads, 8, nil), aFails: true, bFails: true},
		{name: "SEND, receive too short", run: short(100, 101), aFails: true, bFails: true, differs: tooShort},
		{name: "SEND of several packets, receive too short", run: short(5000, pages), aFails: true, bFails: true, differs: tooShort},
		{name: "SEND, receive with a wrong lkey", run: func(s *stage) {
			sges := s.b.SGE(0, 100)
			sges[0].LKey = wrongKey(sges[0].LKey)
			s.recv(sges)
			s.recv(s.b.SGE(0, 100))
			s.send(s.request(verbs.WRSend, 100))
			s.send(s.request(verbs.WRSend, 100))
		}, aFails: true, bFails: true, differs: wrongLKey("b")},
		{name: "SEND, wrong lkey", run: plain(verbs.WRSend, 100, badLocal), aFails: true, differs: wrongLKey("a")},
		{name: "WRITE, wrong lkey", run: plain(writes, 100, badLocal), aFails: true, differs: wrongLKey("a")},
		{name: "READ, wrong lkey", run: func(s *stage) {
			wr := s.request(reads, 100)
			badLocal(s, &wr)
			s.send(wr)
		}, aFails: true},
		{name: "SEND, no receive", connect: fewRNR, run: func(s *stage) {
			s.send(s.request(verbs.WRSend, 100))
			s.send(s.request(verbs.WRSend, 100))
		}, aFails: true},
		{name: "WRITE with immediate, no receive", connect: fewRNR, run: func(s *stage) {
			s.send(s.request(verbs.WRRDMAWriteWithImm, 100))
			s.send(s.request(verbs.WRSend, 100))
		}, aFails: true},
		{name: "SEND, receive posted late", run: func(s *stage) {
			s.send(s.request(verbs.WRSend, 100))
			s.send(s.request(verbs.WRSend, 200))
			for range 2 {
				s.recv(s.b.SGE(0, 200))
			}
		}},
		{name: "WRITE with immediate, receive without memory", run: func(s *stage) {
			s.recv(s.b.SGE(0, 0))
			wr := s.request(verbs.WRRDMAWriteWithImm, pages)
			wr.Imm = 0xabcd0123
			s.send(wr)
		}},
		{name: "SEND with invalidate, wrong rkey", connect: impatient, run: plain(verbs.WRSendWithInv, 100, func(s *stage, wr *verbs.SendWR) { wr.InvKey = 0x12345600 }),
			aFails: true, bFails: true,
			differs: map[string]string{"b": "softrnic sends a NAK for an invalidation that fails; rxe acknowledges the message and then does not respond."}},
		{name: "SEND, no queue pair with this number", stray: true, connect: impatient, run: func(s *stage) {
			s.send(s.request(verbs.WRSend, 100))
			s.send(s.request(verbs.WRSend, 100))
		}, aFails: true},

		{name: "UC: valid request", a: uc, b: uc, run: plain(writes, pages, nil), arrives: 1},
		{name: "UC: WRITE, wrong rkey", a: uc, b: uc, run: plain(writes, 100, badKey), arrives: 1},
		{name: "UC: WRITE beyond the region", a: uc, b: uc, run: plain(writes, 8, outside), arrives: 1},
		{name: "UC: SEND, receive too short", a: uc, b: uc, run: short(100, 101), bFails: true, arrives: 1, differs: dropped},
		{name: "UC: SEND, no receive", a: uc, b: uc, run: func(s *stage) { s.send(s.request(verbs.WRSend, 100)) }},
		{name: "UC: SEND, wrong lkey", a: uc, b: uc, run: plain(verbs.WRSend, 100, badLocal), aFails: true, differs: wrongLKey("a")},
		{name: "UD: valid request", a: ud, b: ud, run: short(140, 100), arrives: 2},
		{name: "UD: SEND, receive too short", a: ud, b: ud, run: short(140, 101), bFails: true, arrives: 1, differs: dropped},
		{name: "UD: SEND, no receive", a: ud, b: ud, run: func(s *stage) { s.send(s.request(verbs.WRSend, 100)) }},
		{name: "UD: SEND, wrong lkey", a: ud, b: ud, run: plain(verbs.WRSend, 100, badLocal), aFails: true, differs: wrongLKey("a")},
	}
}

// runCase runs a case with a pair of adapters and returns the completions at each side,
// followed by the state of the queue pair.
func runCase(t *testing.T, g *lab.Guest, k kind, c statusCase) (a, b []string) {
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
	a = describeWCs(poll(t, s.a, len(s.sent)), s.sent)
	a = append(a, "queue pair "+waitState(t, s.a, c.aFails))
	state := waitState(t, s.b, c.bFails)
	arrived := poll(t, s.b, c.arrives)
	require.NoError(t, s.b.Fail(0)) // so that all receives complete
	b = describeWCs(append(arrived, poll(t, s.b, len(s.posted)-c.arrives)...), s.posted)
	return a, append(b, "queue pair "+state)
}

// waitState returns the state of the queue pair. It waits up to 5 s for the error state,
// or for another one, as fails predicts, because a queue pair may enter the error state
// shortly after the completion.
func waitState(t *testing.T, end peer.Side, fails bool) string {
	t.Helper()
	for begin := time.Now(); ; {
		state, err := end.State(0)
		require.NoError(t, err)
		if (state == verbs.StateErr) == fails || time.Since(begin) > 5*time.Second {
			return state.String()
		}
	}
}

// describeWCs returns a text for each completion.
func describeWCs(wcs []verbs.WC, names []string) (list []string) {
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

// TestStatus checks that errors have the same completion status at the same side as
// between two rxe.
func TestStatus(t *testing.T) {
	g := lab.Need(t)
	for _, c := range statusCases() {
		t.Run(c.name, func(t *testing.T) {
			var refA, refB []string
			t.Run(linuxAlone.String(), func(t *testing.T) {
				refA, refB = runCase(t, g, linuxAlone, c)
				statusT.Set("a", strings.Join(refA, ", "), c.name)
				statusT.Set("b", strings.Join(refB, ", "), c.name)
			})
			for _, k := range kinds {
				side := "b"
				if k.a == "softrnic" {
					side = "a"
				}
				reason := c.differs[side]
				text := "same"
				cell(t, statusT, k.String(), []string{c.name}, k.String(), func(t *testing.T) {
					a, b := runCase(t, g, k, c)
					if reason == "" {
						require.Equal(t, refA, a, "a")
						require.Equal(t, refB, b, "b")
						return
					}
					require.False(t, slices.Equal(refA, a) && slices.Equal(refB, b), "no difference any more: %s", reason)
					note := fmt.Sprintf("a: %s; b: %s. %s", strings.Join(a, ", "), strings.Join(b, ", "), reason)
					text = fmt.Sprintf("differs (%d)", statusT.Note(note))
				})
				statusT.Set(k.String(), text, c.name)
			}
		})
	}
}
