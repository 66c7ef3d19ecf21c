package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/match"
)

// polled is a condition that is not ready, with a round or an envelope.
type polled struct {
	round *uint64
	probe match.Envelope
}

func (p *polled) Ready() bool { return false }

func (p *polled) OnPoll(s *engine.PollStats) {
	if p.round == nil {
		if s.FirstProbeInRound(p.probe) {
			s.Add(p.probe, "probe")
		}
	} else if s.FirstInRound(p.round) {
		s.Add(p, "request")
	}
}

// TestPollRecords checks that a condition is recorded once a round, and that a round has a bounded
// number of records.
func TestPollRecords(t *testing.T) {
	e, err := engine.New(0, 1, nil)
	require.NoError(t, err)
	request := &polled{round: new(uint64)}
	for range 2 {
		for range 3 {
			require.False(t, e.Test(request))
			require.False(t, e.Test(&polled{probe: match.Envelope{Tag: 1}}))
			require.False(t, e.Test(&polled{probe: match.Envelope{Tag: 2}}))
		}
		list, more, spent := e.TakePollStats()
		require.Len(t, list, 3)
		require.False(t, more)
		require.Equal(t, request, list[0].Key)
		require.NotEmpty(t, list[0].Stack)
		require.Equal(t, match.Envelope{Tag: 2}, list[2].Key)
		require.Equal(t, 9, spent.Tests)
	}
	for tag := range int32(1025) {
		require.False(t, e.Test(&polled{probe: match.Envelope{Tag: tag}}))
	}
	list, more, _ := e.TakePollStats()
	require.Len(t, list, 1024)
	require.True(t, more)
	list, more, spent := e.TakePollStats()
	require.Empty(t, list)
	require.False(t, more)
	require.Zero(t, spent.Tests)
	require.Zero(t, spent.Inside)
}
