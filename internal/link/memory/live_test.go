package memory

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result of a Wait in another goroutine.
type result struct {
	readable bool
	err      error
}

func waiting(c *Conn) <-chan result {
	done := make(chan result)
	go func() {
		readable, err := c.Wait(-1)
		done <- result{readable, err}
	}()
	return done
}

func TestLiveWait(t *testing.T) {
	l := NewLive()
	a, b := attach(t, l, addrA, Options{}), attach(t, l, addrB, Options{})

	done := waiting(b)
	send(t, a, pathB, 100, 2)
	require.Equal(t, result{true, nil}, <-done)
	require.Len(t, read(t, b, addrA), 2)

	done = waiting(b)
	b.Wake()
	require.False(t, (<-done).readable)

	b.Wake()
	b.Wake()
	require.False(t, (<-waiting(b)).readable, "a Wake before Wait is not lost")

	readable, err := b.Wait(0)
	require.NoError(t, err)
	require.False(t, readable)
	start := l.Now()
	_, err = b.Wait(time.Millisecond)
	require.NoError(t, err)
	require.GreaterOrEqual(t, l.Now()-start, int64(time.Millisecond), "two Wakes count as one")

	done = waiting(b)
	require.NoError(t, b.Close())
	require.ErrorIs(t, (<-done).err, net.ErrClosed)
	send(t, a, pathB, 100, 1)
	require.EqualValues(t, 1, a.Stats().SendUnreachable)
}

// TestLivePingPong runs two goroutines on each link.
func TestLivePingPong(t *testing.T) {
	const rounds = 1000
	l := NewLive()
	a, b := attach(t, l, addrA, Options{}), attach(t, l, addrB, Options{})
	echo := make(chan error, 1)
	go func() {
		batch, r := link.NewBatch(1<<16), link.NewDatagrams(4)
		for {
			_, err := b.Wait(-1)
			if err != nil {
				echo <- err
				return
			}
			b.ReadBatch(r)
			batch.Reset()
			for _, d := range r.Msgs() {
				for i := range d.Count() {
					batch.Append(pathA, d.Packet(i))
				}
			}
			b.WriteBatch(batch)
		}
	}()
	r := link.NewDatagrams(4)
	for range rounds {
		send(t, a, pathB, 100, 3)
		for packets := 0; packets < 3; {
			_, err := a.Wait(-1)
			require.NoError(t, err)
			a.ReadBatch(r)
			for _, d := range r.Msgs() {
				packets += d.Count()
			}
		}
	}
	require.NoError(t, b.Close())
	require.True(t, errors.Is(<-echo, net.ErrClosed))
	require.EqualValues(t, 3*rounds, b.Stats().SentPackets)
}
