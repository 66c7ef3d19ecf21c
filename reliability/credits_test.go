package reliability

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/wire"
)

// creditModel is a requester and a responder in plain numbers: messages are numbered from 1,
// without wrap or encoding.
type creditModel struct {
	started   int    // messages
	limit     int    // LSN
	inFlight  []bool // messages in flight that consume a receive
	receives  int    // posted at the responder and free
	completed int    // MSN
}

// TestCreditsAgainstSimulation compares Credits with a literal simulation: a requester that starts
// the permitted messages, and a responder that consumes receives one by one and sometimes
// advertises the remaining ones, rounded as in the table.
func TestCreditsAgainstSimulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.SampledFrom([]uint32{0, 0xfffff0, 0xffffff}).Draw(t, "start")
		c := Credits{ssn: start, lsn: start}
		var m creditModel
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				consumes := rapid.Bool().Draw(t, "consumes")
				allowed := !consumes || m.started+1 <= m.limit+1
				require.Equal(t, allowed, c.Allows(consumes))
				if !allowed {
					continue
				}
				c.StartMessage(consumes)
				m.started++
				m.inFlight = append(m.inFlight, consumes)
				if !consumes {
					m.limit++
				}
			case 1:
				m.receives += rapid.IntRange(0, 20).Draw(t, "posted")
			case 2: // the responder accepts messages in order
				for len(m.inFlight) > 0 && (!m.inFlight[0] || m.receives > 0) {
					if m.inFlight[0] {
						m.receives--
					}
					m.inFlight = m.inFlight[1:]
					m.completed++
				}
			case 3: // an acknowledgement
				code := wire.CreditCode(m.receives)
				told, _ := wire.Credits(code)
				require.LessOrEqual(t, told, m.receives)
				moved := m.completed+told > m.limit
				m.limit = max(m.limit, m.completed+told)
				require.Equal(t, moved, c.Update(code, start+uint32(m.completed)))
				if len(m.inFlight) == 0 {
					require.True(t, c.Allows(true), "with everything acknowledged a probe may go: no deadlock")
				}
			}
			short := -m.receives
			for _, consumes := range m.inFlight {
				if consumes {
					short++
				}
			}
			require.LessOrEqual(t, short, 1, "at most one message is in flight without a receive: the probe")
		}
	})
}

// TestCreditsOnlyMoveForward checks that an old acknowledgement does not revoke credits of a newer
// one.
func TestCreditsOnlyMoveForward(t *testing.T) {
	var c Credits
	c.Reset(false)
	c.StartMessage(true)
	require.True(t, c.Update(wire.CreditCode(8), 1))
	require.False(t, c.Update(wire.CreditCode(4), 1))
	require.False(t, c.Update(wire.CreditCode(0), 5))
	for range 9 {
		require.True(t, c.Allows(true))
		c.StartMessage(true)
	}
	require.False(t, c.Allows(true))
	require.True(t, c.Allows(false))
}

// TestUnlimited checks that code 31 disables credits until the next connection.
func TestUnlimited(t *testing.T) {
	var c Credits
	c.StartMessage(true)
	require.False(t, c.Allows(true))
	require.True(t, c.Update(wire.CreditUnlimited, 0))
	require.False(t, c.Update(wire.CreditUnlimited, 0), "no news")
	require.False(t, c.Update(0, 0))
	for range 100 {
		require.True(t, c.Allows(true))
		c.StartMessage(true)
	}
	c.Reset(false)
	c.StartMessage(true)
	require.False(t, c.Allows(true))
	c.Reset(true)
	c.StartMessage(true)
	require.True(t, c.Allows(true))
}

// TestCreditsLow checks that a requester of single messages requests an acknowledgement in time,
// but not for each.
func TestCreditsLow(t *testing.T) {
	for granted, want := range map[int]int{0: 1, 1: 1, 2: 1, 4: 2, 8: 6, 16: 12, 32: 24} { // the first request
		var c Credits
		c.Reset(false)
		require.Equal(t, granted > 0, c.Update(wire.CreditCode(granted), 0))
		n := 1
		for c.StartMessage(true); !c.BelowWatermark() && n < 100; c.StartMessage(true) {
			n++
		}
		require.Equal(t, want, n, "%d credits", granted)
	}
	var c Credits
	c.Reset(true)
	require.False(t, c.BelowWatermark())
}
