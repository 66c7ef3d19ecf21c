package acp_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

// TestDirectRefused breaks the receiver's channel while a long message is in flight to its buffer.
// The key is invalidated, the put is refused without effect on other channels of the connection,
// and no memory stays registered.
func TestDirectRefused(t *testing.T) {
	const n, rounds, beside = 4 << 20, 6, 40
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		var others [2]*acp.Channel
		for i := range others {
			var err error
			others[i], err = p.NewChannel(0, 1, acp.ChannelOptions{SlotSize: 64, Imm: i == 1})
			require.NoError(t, err)
		}
		talk := func(from, to int) error {
			for i := from; i < to; i++ {
				for _, ch := range others {
					if p.Rank() == 0 {
						if _, err := ch.Send(message(100, i)).Wait(ctx); err != nil {
							return err
						}
						continue
					}
					buf := make([]byte, 100)
					if _, err := ch.Recv(buf).Wait(ctx); err != nil || !bytes.Equal(buf, message(100, i)) {
						return fmt.Errorf("%v: message %d is another, or %w", ch, i, err)
					}
				}
			}
			return nil
		}
		require.NoError(t, talk(0, beside))
		base := p.Registrations()
		for round := range rounds {
			ch, err := p.NewChannel(0, 1, acp.ChannelOptions{SlotSize: 16 << 10})
			require.NoError(t, err)
			use := ch.Send
			if p.Rank() == 1 {
				use = ch.Recv
			}
			_, err = use(make([]byte, 64<<10)).Wait(ctx)
			require.NoError(t, err)
			buf := make([]byte, n)
			var r *acp.Request
			if p.Rank() == 1 {
				r = use(buf)
			}
			require.NoError(t, p.Sync(ctx))
			if p.Rank() == 0 {
				r = use(buf)
			} else {
				ch.Lie()
			}
			require.NoError(t, talk(beside*(round+1), beside*(round+2)))
			if _, err := r.Wait(ctx); err != nil && p.Rank() == 1 { // otherwise the whole message had arrived before
				require.ErrorIs(t, err, acp.ErrBroken)
			} else if err != nil {
				require.True(t, isAny(err, acp.ErrAccess, acp.ErrRegion), "%v", err)
			}
			if p.Rank() == 1 {
				require.NoError(t, returned(p, base))
			}
			require.NoError(t, p.Sync(ctx))
			if p.Rank() == 0 { // if it had arrived before, this access fails
				_, err := ch.Send(buf).Wait(ctx)
				require.True(t, isAny(err, acp.ErrAccess, acp.ErrRegion), "%v", err)
			}
			require.NoError(t, returned(p, base))
			require.NoError(t, p.Sync(ctx))
		}
		return nil
	}))
}

// TestLeaseOfMemory checks that the end of a channel deregisters all memory, of ends, messages and
// receives, even if nothing is sent afterwards.
func TestLeaseOfMemory(t *testing.T) {
	const long = 64 << 10
	for name, end := range map[string]func(p *acp.Process, ch *acp.Channel, base int) error{
		"freed": func(_ *acp.Process, ch *acp.Channel, _ int) error {
			_, err := ch.Free().Wait(ctx)
			return err
		},
		"receives are left": func(p *acp.Process, ch *acp.Channel, _ int) error {
			if p.Rank() == 1 {
				r := ch.Recv(make([]byte, long))
				if _, err := r.Wait(ctx); !isAny(err, acp.ErrEnd) {
					return fmt.Errorf("receive: %w", err)
				}
			}
			_, err := ch.Free().Wait(ctx)
			return err
		},
		"sender fails with a message half sent": func(p *acp.Process, ch *acp.Channel, base int) error {
			if p.Rank() == 0 {
				r := ch.Send(make([]byte, 100*long)) // exceeds the slots, and no receive is posted
				for range 1000 {
					p.Progress()
				}
				ch.Lie()
				if _, err := r.Wait(ctx); !isAny(err, acp.ErrBroken) {
					return fmt.Errorf("send: %w", err)
				}
				if err := returned(p, base); err != nil {
					return err
				}
				return p.Sync(ctx)
			}
			if err := p.Sync(ctx); err != nil { // credits are refused from now on
				return err
			}
			_, err := ch.Recv(make([]byte, 100*long)).Wait(ctx)
			if !isAny(err, acp.ErrRegion, acp.ErrAccess) {
				return fmt.Errorf("receive: %w", err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
				require.NoError(t, p.Sync(ctx))
				base := p.Registrations()
				ch, err := p.NewChannel(0, 1, acp.ChannelOptions{SlotSize: 16 << 10})
				require.NoError(t, err)
				use := ch.Send
				if p.Rank() == 1 {
					use = ch.Recv
				}
				for range 3 {
					_, err := use(make([]byte, long)).Wait(ctx)
					require.NoError(t, err)
				}
				require.NoError(t, end(p, ch, base))
				return returned(p, base)
			}))
		})
	}
}

// returned waits until a rank has no more registrations than before.
func returned(p *acp.Process, base int) error {
	for p.Registrations() > base {
		if p.Progress(); ctx.Err() != nil {
			return fmt.Errorf("rank %d has %d regions, and had %d", p.Rank(), p.Registrations(), base)
		}
	}
	return nil
}

// TestFreeIsLast checks that Free completes after the earlier requests.
func TestFreeIsLast(t *testing.T) {
	for name, o := range variants {
		t.Run(name, func(t *testing.T) {
			o.Slots = 32
			runPair(t, o, o, func(_ *acp.Process, ch *acp.Channel) error {
				if _, err := ch.Send(nil).Wait(ctx); err != nil { // establishes the connection
					return err
				}
				long, short := ch.Send(make([]byte, 1<<20)), ch.Send(make([]byte, 8))
				if _, err := short.Wait(ctx); err != nil {
					return err
				}
				require.True(t, long.Done())
				long = ch.Send(make([]byte, 256<<10))
				_, err := ch.Free().Wait(ctx)
				require.True(t, long.Done())
				return err
			}, func(_ *acp.Process, ch *acp.Channel) error {
				for _, n := range []int{0, 1 << 20, 8, 256 << 10} {
					if _, err := ch.Recv(make([]byte, n)).Wait(ctx); err != nil {
						return err
					}
				}
				_, err := ch.Free().Wait(ctx)
				return err
			})
		})
	}
}

// TestBoardBesideMessages checks for all slot sizes that the board of adverts does not overlap
// messages in slots.
func TestBoardBesideMessages(t *testing.T) {
	for size := 8192 + 184; size <= 8192+208; size += 8 {
		o := acp.ChannelOptions{SlotSize: size, Slots: 1}
		runPair(t, o, o, func(_ *acp.Process, ch *acp.Channel) error {
			for i, n := range lengthsAtBoard() {
				if _, err := ch.Send(message(n, i)).Wait(ctx); err != nil {
					return err
				}
			}
			_, err := ch.Free().Wait(ctx)
			return err
		}, func(_ *acp.Process, ch *acp.Channel) error {
			bufs := make([][]byte, len(lengthsAtBoard()))
			under := make([]*acp.Request, len(bufs))
			for i := range bufs { // all are posted, and advertised
				bufs[i] = make([]byte, 40000)
				under[i] = ch.Recv(bufs[i])
			}
			for i, n := range lengthsAtBoard() {
				if got, err := under[i].Wait(ctx); err != nil || !bytes.Equal(bufs[i][:got], message(n, i)) {
					return fmt.Errorf("slots of %d bytes: message %d: %d bytes, not %d, or others: %w", size, i, got, n, err)
				}
			}
			_, err := ch.Free().Wait(ctx)
			return err
		})
	}
}

// lengthsAtBoard returns long messages, whose receives are advertised, and the longest that are
// not.
func lengthsAtBoard() (lengths []int) {
	for range 10 {
		lengths = append(lengths, 40000, 8191, 8190, 8185, 8191)
	}
	return lengths
}
