package link

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bothLinks runs f on the accelerated and on the portable link.
func bothLinks(t *testing.T, f func(t *testing.T, o Options)) {
	for _, portable := range []bool{false, true} {
		name := "fast"
		if portable {
			name = "portable"
		}
		t.Run(name, func(t *testing.T) {
			f(t, Options{Addr: netip.MustParseAddrPort("127.0.0.1:0"), Portable: portable})
		})
	}
}

// sendOne sends one packet of n bytes.
func sendOne(t testing.TB, from, to Conn, n int) {
	b := NewBatch(n)
	b.Next(pathTo(to), n)
	require.NoError(t, from.WriteBatch(b))
}

func TestWaitTimeout(t *testing.T) {
	bothLinks(t, func(t *testing.T, o Options) {
		c := open(t, o)
		for _, timeout := range []time.Duration{0, time.Nanosecond, time.Millisecond} {
			start := time.Now()
			readable, err := c.Wait(timeout)
			require.NoError(t, err)
			require.False(t, readable)
			require.GreaterOrEqual(t, time.Since(start), timeout)
		}
	})
}

func TestWaitSeesData(t *testing.T) {
	bothLinks(t, func(t *testing.T, o Options) {
		a, b := open(t, o), open(t, o)
		sendOne(t, a, b, 64)
		readable, err := b.Wait(-1)
		require.NoError(t, err)
		require.True(t, readable)
		readable, err = b.Wait(0)
		require.NoError(t, err)
		require.True(t, readable, "until it is read")

		b.Wake()
		readable, err = b.Wait(-1)
		require.NoError(t, err)
		require.True(t, readable, "a Wake hides no data")

		receive(t, b, NewDatagrams(4), 1)
		readable, err = b.Wait(0)
		require.NoError(t, err)
		require.False(t, readable)
	})
}

func TestWakeBeforeWait(t *testing.T) {
	bothLinks(t, func(t *testing.T, o Options) {
		c := open(t, o)
		for range 3 {
			c.Wake()
			c.Wake() // both count as one
			readable, err := c.Wait(-1)
			require.NoError(t, err)
			require.False(t, readable)
		}
		readable, err := c.Wait(time.Millisecond) // no Wake is pending
		require.NoError(t, err)
		require.False(t, readable)
	})
}

// TestWakeIsNeverLost has two waiters wake each other in turn: if one Wake is lost both wait
// forever. The race detector checks that writes before Wake are visible to the woken goroutine.
func TestWakeIsNeverLost(t *testing.T) {
	bothLinks(t, func(t *testing.T, o Options) {
		const rounds = 5000
		links := [2]Conn{open(t, o), open(t, o)}
		var turn atomic.Int64
		var last int64 // written by the goroutine whose turn it is
		var players sync.WaitGroup
		for me := range int64(2) {
			players.Go(func() {
				for round := me; round < rounds; round += 2 {
					for turn.Load() != round {
						if _, err := links[me].Wait(-1); err != nil {
							t.Error(err)
							return
						}
					}
					if last != round {
						t.Errorf("round %d sees %d", round, last)
					}
					last = round + 1
					turn.Store(round + 1)
					links[1-me].Wake()
				}
			})
		}
		players.Wait()
	})
}

// TestWakeStorm wakes one waiter from many goroutines at once.
func TestWakeStorm(t *testing.T) {
	bothLinks(t, func(t *testing.T, o Options) {
		const wakers, each = 4, 500
		c := open(t, o)
		var posted atomic.Int64
		for range wakers {
			go func() {
				for range each {
					posted.Add(1)
					c.Wake()
				}
			}()
		}
		for posted.Load() < wakers*each {
			_, err := c.Wait(-1)
			require.NoError(t, err)
		}
	})
}

func TestCloseEndsWait(t *testing.T) {
	bothLinks(t, func(t *testing.T, o Options) {
		for range 50 {
			c, err := OpenUDP(o)
			require.NoError(t, err)
			var users sync.WaitGroup
			started := make(chan struct{}, 3)
			for range 2 {
				users.Go(func() {
					started <- struct{}{}
					for {
						if _, err := c.Wait(-1); err != nil {
							wantClosed(t, err)
							return
						}
					}
				})
			}
			users.Go(func() {
				started <- struct{}{}
				for r := NewDatagrams(1); ; {
					if _, err := c.ReadBatch(r); err != nil {
						wantClosed(t, err)
						return
					}
				}
			})
			for range cap(started) {
				<-started
			}
			users.Go(func() { c.Close() })
			require.NoError(t, c.Close())
			users.Wait()
		}
	})
}

// wantClosed is for goroutines other than the test's, which must not call require.
func wantClosed(t *testing.T, err error) {
	if !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want net.ErrClosed", err)
	}
}

func TestUseAfterClose(t *testing.T) {
	bothLinks(t, func(t *testing.T, o Options) {
		c, err := OpenUDP(o)
		require.NoError(t, err)
		addr := c.LocalAddr()
		require.NoError(t, c.Close())
		require.NoError(t, c.Close())

		c.Wake()
		_, err = c.Wait(-1)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = c.ReadBatch(NewDatagrams(1))
		require.ErrorIs(t, err, net.ErrClosed)
		b := NewBatch(64)
		b.Next(pathA, 64)
		require.ErrorIs(t, c.WriteBatch(b), net.ErrClosed)

		o.Addr = addr
		require.Equal(t, addr, open(t, o).LocalAddr(), "the address is free when Close returns")
	})
}
