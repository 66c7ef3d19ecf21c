package reliability

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/wire"
)

// at returns the PSN n packets after one shortly before the wrap.
func at(n int) wire.PSN { return wire.PSN(0xfffff0).Add(n) }

const (
	seqNAK   = wire.NakPSNSequence
	fatalNAK = wire.NakRemoteAccess
	rnrNAK   = wire.Syndrome(0x2c)
)

// slowAcks keeps every pending acknowledgement and decides when it is queried.
type slowAcks struct {
	acks []slowAck
	naks []slowNAK
	ends []int // positions of packets that end messages
}

type slowAck struct {
	at  int  // position of the PSN
	due Time // 0: immediately
}

type slowNAK struct {
	s  wire.Syndrome
	at int
}

// nak returns the pending NAK of highest priority: fatal before RNR before sequence; of equal ones
// the newest.
func (m *slowAcks) nak() (worst slowNAK, ok bool) {
	rank := func(s wire.Syndrome) int {
		if s == seqNAK {
			return 0
		}
		return 1
	}
	for _, n := range m.naks {
		if !ok || rank(n.s) >= rank(worst.s) {
			worst, ok = n, true
		}
	}
	return worst, ok
}

func (m *slowAcks) add(pos int, due Time) {
	if _, ok := m.nak(); !ok {
		m.acks = append(m.acks, slowAck{pos, due})
	}
	m.caughtUp(pos)
}

func (m *slowAcks) caughtUp(pos int) {
	for i := range m.naks {
		if n := &m.naks[i]; n.s == seqNAK && n.at <= pos {
			n.at = pos + 1
		}
	}
}

func (m *slowAcks) covered(pos int) {
	// The remaining ones keep the age of the covered ones.
	var left []slowAck
	first := m.deadline()
	for _, a := range m.acks {
		if a.at > pos {
			a.due = min(a.due, first)
			left = append(left, a)
		}
	}
	m.acks = left
	if _, nak := m.nak(); !nak {
		m.ends = slices.DeleteFunc(m.ends, func(end int) bool { return end <= pos })
	}
	m.caughtUp(pos)
}

// deadline returns the time at which the first pending acknowledgement is due.
func (m *slowAcks) deadline() Time {
	first := Time(math.MaxInt64)
	for _, a := range m.acks {
		first = min(first, a.due)
	}
	return first
}

func (m *slowAcks) drain(now Time, credit uint8) (s wire.Syndrome, pos int, owed bool) {
	n, nak := m.nak()
	if !nak && m.deadline() > now {
		return 0, 0, false
	}
	for _, a := range m.acks {
		pos, owed = max(pos, a.at), true
	}
	*m = slowAcks{}
	if nak {
		return n.s, n.at, true
	}
	return wire.AckSyndrome(credit), pos, owed
}

// TestAcksAgainstModel compares Acks with a list of all pending acknowledgements.
func TestAcksAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Acks
		var m slowAcks
		pos, now := 0, Time(1)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			pos += rapid.IntRange(0, 3).Draw(t, "forward")
			now += Time(rapid.IntRange(0, 3).Draw(t, "time"))
			a.Advance(now)
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0, 1:
				old := max(0, pos-rapid.IntRange(0, 4).Draw(t, "behind"))
				ends := rapid.Bool().Draw(t, "ends")
				a.ScheduleAck(at(old), ends)
				m.add(old, 0)
				if _, nak := m.nak(); ends && !nak {
					m.ends = append(m.ends, old)
				}
			case 5:
				old := max(0, pos-rapid.IntRange(0, 4).Draw(t, "behind"))
				due := now + Time(rapid.IntRange(1, 5).Draw(t, "delay"))
				if !a.Pending() && a.Deadline() != 0 {
					due = max(due, a.Deadline()) // later ones are due later
				}
				a.ScheduleDelayed(at(old), due)
				m.add(old, due)
			case 2:
				s := rapid.SampledFrom([]wire.Syndrome{seqNAK, seqNAK, rnrNAK, fatalNAK}).Draw(t, "syndrome")
				if n, ok := m.nak(); ok && n.s == fatalNAK {
					continue // no acknowledgement follows it
				}
				a.ScheduleNAK(s, at(pos))
				m.naks = append(m.naks, slowNAK{s, pos})
			case 3:
				a.OnResponseSent(at(pos))
				m.covered(pos)
			case 4:
				credit := uint8(rapid.IntRange(0, 31).Draw(t, "credit"))
				s, p, owed := m.drain(now, credit)
				require.Equal(t, owed, a.Pending())
				if !owed {
					continue
				}
				require.Equal(t, s.Kind() != wire.KindAck, a.NAKPending())
				gotS, gotP := a.Pop(credit)
				require.Equal(t, s, gotS)
				require.Equal(t, at(p), gotP)
				require.False(t, a.Pending())
				require.False(t, a.NAKPending())
			}
			if _, nak := m.nak(); !nak {
				require.Equal(t, len(m.ends) > 0, a.CoversMessageEnd())
			}
		}
	})
}

// TestAcksPriorities lists which pending acknowledgement replaces which.
func TestAcksPriorities(t *testing.T) {
	for what, c := range map[string]struct {
		do   func(a *Acks)
		want wire.Syndrome
		psn  int
	}{
		"the newest acknowledgement":          {func(a *Acks) { a.ScheduleAck(at(3), true); a.ScheduleAck(at(5), true); a.ScheduleAck(at(4), true) }, 9, 5},
		"a NAK replaces an acknowledgement":   {func(a *Acks) { a.ScheduleAck(at(3), true); a.ScheduleNAK(seqNAK, at(4)) }, seqNAK, 4},
		"an acknowledgement replaces no NAK":  {func(a *Acks) { a.ScheduleNAK(rnrNAK, at(4)); a.ScheduleAck(at(6), true) }, rnrNAK, 4},
		"an RNR NAK replaces a sequence NAK":  {func(a *Acks) { a.ScheduleNAK(seqNAK, at(4)); a.ScheduleNAK(rnrNAK, at(4)) }, rnrNAK, 4},
		"a sequence NAK replaces no RNR NAK":  {func(a *Acks) { a.ScheduleNAK(rnrNAK, at(4)); a.ScheduleNAK(seqNAK, at(4)) }, rnrNAK, 4},
		"a fatal NAK replaces all":            {func(a *Acks) { a.ScheduleNAK(rnrNAK, at(4)); a.ScheduleNAK(fatalNAK, at(5)) }, fatalNAK, 5},
		"a closed gap moves the NAK":          {func(a *Acks) { a.ScheduleNAK(seqNAK, at(4)); a.ScheduleAck(at(6), true) }, seqNAK, 7},
		"a response that closes the gap, too": {func(a *Acks) { a.ScheduleNAK(seqNAK, at(4)); a.OnResponseSent(at(4)) }, seqNAK, 5},
		"an old acknowledgement leaves it":    {func(a *Acks) { a.ScheduleNAK(seqNAK, at(4)); a.ScheduleAck(at(3), true) }, seqNAK, 4},
		"a response covers what is up to it": {func(a *Acks) {
			a.ScheduleAck(at(3), true)
			a.OnResponseSent(at(3))
			a.ScheduleAck(at(5), true)
			a.OnResponseSent(at(4))
		}, 9, 5},
		"a NAK is not covered":                     {func(a *Acks) { a.ScheduleNAK(fatalNAK, at(3)); a.OnResponseSent(at(9)) }, fatalNAK, 3},
		"what was taken is settled":                {func(a *Acks) { a.ScheduleNAK(seqNAK, at(3)); a.Pop(0); a.ScheduleAck(at(4), true) }, 9, 4},
		"an acknowledgement may wrap":              {func(a *Acks) { a.ScheduleAck(at(14), true); a.ScheduleAck(at(17), true) }, 9, 17},
		"an acknowledgement before the wrap stays": {func(a *Acks) { a.ScheduleAck(at(17), true); a.ScheduleAck(at(14), true) }, 9, 17},
	} {
		var a Acks
		c.do(&a)
		require.True(t, a.Pending(), what)
		s, psn := a.Pop(9)
		require.Equal(t, c.want, s, what)
		require.Equal(t, at(c.psn), psn, what)
	}
	var a Acks
	a.ScheduleAck(at(3), true)
	a.OnResponseSent(at(3))
	require.False(t, a.Pending())
}
