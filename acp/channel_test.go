package acp_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/rnic"
)

// variants are the two kinds of signals.
var variants = map[string]acp.ChannelOptions{"mirrored": {}, "imm": {Imm: true}}

// runPair runs two ranks: the sender and the receiver of a channel.
func runPair(t *testing.T, o, ro acp.ChannelOptions, send, recv func(p *acp.Process, ch *acp.Channel) error) {
	t.Helper()
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		f, mine := send, o
		if p.Rank() == 1 {
			f, mine = recv, ro
		}
		ch, err := p.NewChannel(0, 1, mine)
		require.NoError(t, err)
		return f(p, ch)
	}))
}

// message returns n bytes that depend on their position.
func message(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}

// TestChannel sends messages of many lengths, and checks order and contents.
func TestChannel(t *testing.T) {
	lengths := []int{0, 1, 8, 55, 56, 57, 64, 120, 1000, 9000, 20000}
	for name, o := range variants {
		for _, copies := range []bool{false, true} {
			t.Run(fmt.Sprint(name, copies), func(t *testing.T) {
				o := o
				o.SlotSize, o.Slots, o.Copy = 64, 3, copies
				ro := o
				ro.Slots = 5
				runPair(t, o, ro, func(p *acp.Process, ch *acp.Channel) error {
					for i, n := range lengths {
						if _, err := ch.Send(message(n, i)).Wait(ctx); err != nil {
							return err
						}
					}
					_, err := ch.Free().Wait(ctx)
					return err
				}, func(p *acp.Process, ch *acp.Channel) error {
					for i, n := range lengths {
						buf := make([]byte, n+10)
						got, err := ch.Recv(buf).Wait(ctx)
						if err != nil {
							return err
						}
						if !bytes.Equal(buf[:got], message(n, i)) {
							return fmt.Errorf("message %d: %d bytes, not %d, or others", i, got, n)
						}
					}
					if _, err := ch.Recv(nil).Wait(ctx); !errors.Is(err, acp.ErrEnd) {
						return fmt.Errorf("at the end: %w", err)
					}
					_, err := ch.Free().Wait(ctx)
					return err
				})
			})
		}
	}
}

// TestSlotsThatHaveNotLeft checks that a slot is not overwritten before it has been sent, because
// lost packets are retransmitted from it.
func TestSlotsThatHaveNotLeft(t *testing.T) {
	for name, o := range variants {
		t.Run(name, func(t *testing.T) {
			o.SlotSize, o.Slots, o.Copy = 4096, 2, true
			const count = 200
			length := func(i int) int { return []int{1000, 0, 10, 4088, 56, 57}[i%6] }
			require.NoError(t, acptest.RunOptions(2, acptest.Options{RNIC: rnic.Options{Impair: "loss 5% seed 7"}}, func(p *acp.Process) error {
				ro := o
				ro.Slots = 16
				if p.Rank() == 0 {
					ro.Slots = 2
				}
				ch, err := p.NewChannel(0, 1, ro)
				require.NoError(t, err)
				var under []*acp.Request
				bufs := make([][]byte, count)
				for i := range count {
					if p.Rank() == 0 {
						under = append(under, ch.Send(message(length(i), i)))
						continue
					}
					bufs[i] = make([]byte, 4096)
					under = append(under, ch.Recv(bufs[i]))
				}
				for i, r := range under {
					n, err := r.Wait(ctx)
					if err == nil && p.Rank() == 1 && !bytes.Equal(bufs[i][:n], message(length(i), i)) {
						err = errors.New("others")
					}
					if err != nil {
						return fmt.Errorf("message %d: %d bytes, not %d: %w", i, n, length(i), err)
					}
				}
				return nil
			}))
		})
	}
}
