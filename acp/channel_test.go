package acp_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

// variants are the two ways in which ends signal.
var variants = map[string]acp.ChannelOptions{"mirrored": {}, "imm": {Imm: true}}

// both has two ranks run: the sender and the receiver of a channel.
func both(t *testing.T, o, ro acp.ChannelOptions, send, recv func(p *acp.Process, ch *acp.Channel) error) {
	t.Helper()
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		f, mine := send, o
		if p.Rank() == 1 {
			f, mine = recv, ro
		}
		ch, err := p.NewChannel(0, 1, mine)
		if err != nil {
			return err
		}
		return f(p, ch)
	}))
}

// message is n bytes that tell where they belong.
func message(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}

// TestChannel: messages of many lengths, in order, whole.
func TestChannel(t *testing.T) {
	lengths := []int{0, 1, 8, 55, 56, 57, 64, 120, 1000, 9000, 20000}
	for name, o := range variants {
		for _, copies := range []bool{false, true} {
			t.Run(fmt.Sprint(name, copies), func(t *testing.T) {
				o := o
				o.SlotSize, o.Slots, o.Copy = 64, 3, copies
				ro := o
				ro.Slots = 5
				both(t, o, ro, func(p *acp.Process, ch *acp.Channel) error {
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
