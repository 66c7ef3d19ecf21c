package rnic

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// TestCorkBurst checks that unreliable messages that are posted one by one are held back, unless a
// poll or time is between them, the batch is full, or the holder of the token is asleep.
func TestCorkBurst(t *testing.T) {
	for _, typ := range []verbs.QPType{verbs.UC, verbs.UD, verbs.RC} {
		a, b := pairOf(t, Options{}, typ)
		q := a.qp.(*queuePair)
		s := q.shard
		wr := verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 4096)}, RemoteQPN: b.qp.Num(), RemoteQKey: qkey}
		if typ == verbs.UD {
			wr.AH = a.handle(t, b.dev)
		}
		s.seizeToken() // neither monitor nor service sends the batch
		s.mu.Lock()
		now := a.dev.now()
		post := func(after time.Duration) (waits bool) {
			now += reliability.Time(after)
			_, err := q.core.PostSend(now, []verbs.SendWR{wr})
			require.NoError(t, err)
			s.drainQP(q, now)
			return s.corkBurst(q, now)
		}
		burst := func(n int) {
			for i := range n {
				require.False(t, post(burstGap), "%v: post %d", typ, i)
				s.flush()
			}
		}
		burst(burstPosts)
		if typ == verbs.RC {
			burst(2 * burstPosts)
		} else {
			for i := range 14 {
				require.True(t, post(burstGap), "%v: packet %d of a group", typ, i)
			}
			require.False(t, post(burstGap), "the group is full")
			require.Equal(t, 1, s.tx.Groups())
			require.Equal(t, 15, s.tx.Len())
			s.flush()
			require.True(t, post(burstGap))
			s.flush()
			require.False(t, post(burstGap+1), "too late")
			s.flush()
			burst(burstPosts - 1)
			s.polls.Add(1)
			burst(burstPosts)
			require.True(t, post(burstGap))
		}
		s.flush()
		s.mu.Unlock()
		s.releaseToken()
	}
}

// TestForgottenBurst checks that a batch is sent although the program does not poll, and that its
// next posts are not held back.
func TestForgottenBurst(t *testing.T) {
	a, b := pairOf(t, Options{}, verbs.UC)
	q := a.qp.(*queuePair)
	s := q.shard
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.seizeToken() // the service is not asleep in the socket
	s.mu.Lock()
	now := a.dev.now()
	s.burst = burst{polls: s.polls.Load(), last: now, posts: burstPosts}
	_, err := q.core.PostSend(now, []verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 8)}}})
	require.NoError(t, err)
	_, err = b.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{b.mr.SGE(0, 8)}}})
	require.NoError(t, err)
	s.drainQP(q, now)
	require.True(t, s.corkBurst(q, now))
	s.mu.Unlock()
	s.releaseToken()
	var wcs [1]verbs.WC
	n, err := b.cq.PollWait(ctx, wcs[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, minBurstSkip, s.burst.skip)
	require.Equal(t, minBurstSkip, s.burst.skips)
}
