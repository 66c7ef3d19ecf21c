package acp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestDirectMessages receives messages of any length, in order, with posted receives, directly or through slots. A
// receive that is too short is filled, and no other memory is written.
func TestDirectMessages(t *testing.T) {
	const (
		count  = 60
		longer = 100 << 10
		guard  = 0xa5
	)
	const never = time.Hour // a rank that is not woken for an event sleeps until the test fails
	for i, net := range []acp.Options{{ProbeDelay: never}, {ProbeDelay: never, Net: acp.UD},
		{ProbeDelay: never, Net: acp.UD, RDM: rdm.Options{Emulate: true}}} {
		for name, o := range variants {
			seed := rand.Uint64()
			t.Run(fmt.Sprint(i, name, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 0))
				o.SlotSize, o.Slots = 8<<10+8*rng.IntN(1<<10), 1+rng.IntN(4)
				lengths, rooms := make([]int, count), make([]int, count)
				for i := range lengths {
					lengths[i] = rng.IntN(longer)
					if rng.IntN(4) == 0 {
						lengths[i] = rng.IntN(5000)
					}
					rooms[i] = longer
					if rng.IntN(4) == 0 {
						rooms[i] = rng.IntN(longer)
					}
				}
				window := 1 + rng.IntN(12)
				require.NoError(t, acptest.RunOptions(2, acptest.Options{ACP: net}, func(p *acp.Process) error {
					ch, err := p.NewChannel(0, 1, o)
					require.NoError(t, err)
					var under []*acp.Request
					var bufs [][]byte
					finish := func(i int) error {
						n, err := under[i].Wait(ctx)
						if err != nil || p.Rank() == 0 {
							return err
						}
						if want := min(lengths[i], rooms[i]); n != want || !bytes.Equal(bufs[i][:n], message(lengths[i], i)[:n]) {
							return fmt.Errorf("message %d: %d bytes, not %d, or others", i, n, want)
						}
						if rest := bufs[i][n:]; !bytes.Equal(rest, bytes.Repeat([]byte{guard}, len(rest))) {
							return fmt.Errorf("message %d of %d bytes: more than that was written", i, n)
						}
						return nil
					}
					for i := range count {
						if i >= window {
							require.NoError(t, finish(i-window))
						}
						if p.Rank() == 0 {
							under = append(under, ch.Send(message(lengths[i], i)))
							continue
						}
						bufs = append(bufs, bytes.Repeat([]byte{guard}, rooms[i]))
						under = append(under, ch.Recv(bufs[i]))
					}
					for i := count - window; i < count; i++ {
						require.NoError(t, finish(i))
					}
					_, err = ch.Free().Wait(ctx)
					return err
				}))
			})
		}
	}
}

// TestDirectMessagesOccur checks that messages to receives posted before do not go through slots.
func TestDirectMessagesOccur(t *testing.T) {
	for name, o := range variants {
		t.Run(name, func(t *testing.T) {
			const n, count = 200 << 10, 10
			require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
				ch, err := p.NewChannel(0, 1, o)
				require.NoError(t, err)
				for i := range count { // the receive is always posted first, except for the first message
					if p.Rank() == 1 {
						buf := make([]byte, n)
						r := ch.Recv(buf)
						require.NoError(t, p.Sync(ctx))
						if got, err := r.Wait(ctx); err != nil || got != n || !bytes.Equal(buf, message(n, i)) {
							return fmt.Errorf("message %d: %d bytes, %w", i, got, err)
						}
						continue
					}
					require.NoError(t, p.Sync(ctx))
					_, err := ch.Send(message(n, i)).Wait(ctx)
					require.NoError(t, err)
				}
				if p.Rank() == 0 {
					require.EqualValues(t, count-1, p.Stats().DirectMessages)
					require.LessOrEqual(t, ch.Memory(), 168+16*2+2*64<<10)
				}
				return nil
			}))
		})
	}
}

// TestDirectCanceled cancels receives of a Chan. The next receive gets the message, also if it is long.
func TestDirectCanceled(t *testing.T) {
	const n = 64 << 10
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		c, err := acp.NewChan[byte](p, 0, 1, acp.ChannelOptions{})
		require.NoError(t, err)
		for i := range 10 {
			if p.Rank() == 0 {
				require.NoError(t, p.Sync(ctx))
				require.NoError(t, c.SendSlice(ctx, message(n, i)))
				continue
			}
			canceled, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := c.RecvSlice(canceled, make([]byte, n)); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("receive %d: %w", i, err)
			}
			require.NoError(t, p.Sync(ctx))
			buf := make([]byte, n)
			if got, err := c.RecvSlice(ctx, buf); err != nil || !bytes.Equal(buf[:got], message(n, i)) {
				return fmt.Errorf("message %d: %d, %w", i, got, err)
			}
		}
		return nil
	}))
}

// TestForgedDirectMessage checks that a direct message without an advertised buffer fails the channel.
func TestForgedDirectMessage(t *testing.T) {
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		ch, err := p.NewChannel(0, 1, acp.ChannelOptions{SlotSize: 64})
		require.NoError(t, err)
		if p.Rank() == 0 {
			_, err := ch.Send([]byte("first")).Wait(ctx)
			require.NoError(t, err)
			require.True(t, ch.SayPlaced(5))
			return p.Sync(ctx)
		}
		_, err = ch.Recv(make([]byte, 100)).Wait(ctx)
		require.NoError(t, err)
		_, err = ch.Recv(make([]byte, 100)).Wait(ctx)
		require.ErrorIs(t, err, acp.ErrBroken)
		return p.Sync(ctx)
	}))
}

// TestDirectPeerDies kills a rank in the middle of direct messages, as sender or as receiver. All requests of
// the other rank fail.
func TestDirectPeerDies(t *testing.T) {
	const n = 1 << 20
	for name, o := range variants {
		for dies, role := range []string{"sender", "receiver"} {
			t.Run(name+" "+role, func(t *testing.T) {
				t.Parallel() // it mostly waits
				managers := pmi.NewLocal(2)
				over := make(chan struct{})
				run := func(rank int, f func(p *acp.Process, dev *rnic.Device, ch *acp.Channel) error) (err error) {
					var dev *rnic.Device
					p, err := acp.Init(func() (_ verbs.Device, err error) {
						dev, err = rnic.Open(rnic.Options{Logger: slog.New(slog.DiscardHandler)})
						return dev, err
					}, acp.Options{Manager: managers[rank], CM: cm.Options{Retries: 4}})
					if err != nil {
						return err
					}
					defer func() { err = errors.Join(err, p.Close()) }()
					ch, err := p.NewChannel(0, 1, o)
					if err != nil {
						return err
					}
					begin := ch.Send
					if rank == 1 {
						begin = ch.Recv
					}
					for range 3 { // adverts are known from the second message on
						if _, err := begin(make([]byte, n)).Wait(ctx); err != nil {
							return err
						}
					}
					return f(p, dev, ch)
				}
				both := make(chan error, 2)
				go func() {
					both <- run(dies, func(_ *acp.Process, dev *rnic.Device, ch *acp.Channel) error {
						if role == "receiver" {
							ch.Recv(make([]byte, n))
						}
						err := dev.SetImpair("loss 100%") // the disconnect must not arrive
						if role == "sender" {
							ch.Send(make([]byte, n))
						}
						<-over
						return err
					})
				}()
				go func() {
					defer close(over)
					both <- run(1-dies, func(_ *acp.Process, dev *rnic.Device, ch *acp.Channel) error {
						var under []*acp.Request
						for range 4 {
							if role == "sender" {
								under = append(under, ch.Recv(make([]byte, n)))
							} else {
								under = append(under, ch.Send(make([]byte, n)))
							}
						}
						for i, r := range under {
							_, err := r.Wait(ctx)
							if err == nil && i == 0 && role == "receiver" {
								continue // the peer was still alive
							}
							if !errors.Is(err, acp.ErrLost) {
								return fmt.Errorf("request %d: %w", i, err)
							}
						}
						return nil
					})
				}()
				require.NoError(t, errors.Join(<-both, <-both))
			})
		}
	}
}
