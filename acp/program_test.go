package acp_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/rnic"
)

// plan is a channel of a program, with its messages.
type plan struct {
	From, To    int
	O, RO       acp.ChannelOptions
	Lengths     []int // of the messages
	Buffers     []int // of the receives; may be more or fewer than messages
	Window      int   // maximum number of outstanding requests
	FreeOnBoth  bool
	AtOnceFreed bool // the sender frees its end before it waits for any request
}

func drawPlan(t *rapid.T, ranks int) plan {
	c := plan{From: rapid.IntRange(0, ranks-1).Draw(t, "from"), Window: rapid.IntRange(1, 5).Draw(t, "window")}
	c.To = (c.From + rapid.IntRange(1, ranks-1).Draw(t, "far")) % ranks
	c.O = acp.ChannelOptions{SlotSize: rapid.SampledFrom([]int{16, 64, 4096, 8400, 16 << 10}).Draw(t, "slot size"), Slots: rapid.IntRange(1, 4).Draw(t, "send slots"),
		Imm: rapid.Bool().Draw(t, "imm"), Copy: rapid.Bool().Draw(t, "copy")}
	c.RO = c.O
	c.RO.Slots = rapid.IntRange(1, 9).Draw(t, "receive slots")
	length := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 20*c.O.SlotSize))
	c.Lengths = rapid.SliceOfN(length, 0, 8).Draw(t, "lengths")
	c.Buffers = rapid.SliceOfN(length, len(c.Lengths), len(c.Lengths)+2).Draw(t, "buffers")
	c.FreeOnBoth, c.AtOnceFreed = rapid.Bool().Draw(t, "free"), rapid.Bool().Draw(t, "at once")
	return c
}

// TestPrograms compares channels between three ranks, each with a goroutine at each end, with queues, for
// random slots and both kinds of signals.
func TestPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const ranks = 3
		var plans []plan
		for range rapid.IntRange(1, 6).Draw(t, "channels") {
			plans = append(plans, drawPlan(t, ranks))
		}
		o := acptest.Options{ACP: acp.Options{Progress: rapid.Bool().Draw(t, "progress")},
			RNIC: rnic.Options{Impair: rapid.SampledFrom([]string{"", "loss 1% seed 3"}).Draw(t, "impair")}}
		require.NoError(t, acptest.RunOptions(ranks, o, func(p *acp.Process) error {
			var work sync.WaitGroup
			errs := make([]error, len(plans))
			for i, c := range plans {
				run, mine := c.send, c.O
				if c.To == p.Rank() {
					run, mine = c.recv, c.RO
				} else if c.From != p.Rank() {
					continue
				}
				ch, err := p.NewChannel(c.From, c.To, mine) // in the same order at both ends
				if err != nil {
					return err
				}
				work.Go(func() { errs[i] = run(ch, i) })
			}
			work.Wait()
			return errors.Join(errs...)
		}))
	})
}

func (c plan) send(ch *acp.Channel, seed int) error {
	var under []*acp.Request
	for k, n := range c.Lengths {
		under = append(under, ch.Send(message(n, seed+k)))
		if len(under) == c.Window {
			if _, err := under[0].Wait(ctx); err != nil {
				return err
			}
			under = under[1:]
		}
	}
	free := func() error {
		_, err := ch.Free().Wait(ctx)
		return err
	}
	if c.AtOnceFreed {
		if err := free(); err != nil {
			return err
		}
	}
	for _, r := range under {
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
	}
	if !c.AtOnceFreed {
		return free()
	}
	return nil
}

func (c plan) recv(ch *acp.Channel, seed int) error {
	bufs := make([][]byte, len(c.Buffers))
	requests := make([]*acp.Request, len(c.Buffers))
	take := func(k int) error {
		n, err := requests[k].Wait(ctx)
		if k >= len(c.Lengths) {
			if !errors.Is(err, acp.ErrEnd) {
				return fmt.Errorf("%v: receive %d of %d messages: %d bytes, %w", ch, k, len(c.Lengths), n, err)
			}
			return nil
		}
		if err != nil {
			return err
		}
		want := message(c.Lengths[k], seed+k)
		if want = want[:min(len(want), c.Buffers[k])]; !bytes.Equal(want, bufs[k][:n]) {
			return fmt.Errorf("%v: message %d of %d bytes in %d: %d bytes, or others", ch, k, c.Lengths[k], c.Buffers[k], n)
		}
		return nil
	}
	for k, n := range c.Buffers {
		bufs[k] = make([]byte, n)
		requests[k] = ch.Recv(bufs[k])
		if k >= c.Window {
			if err := take(k - c.Window); err != nil {
				return err
			}
		}
	}
	for k := max(0, len(c.Buffers)-c.Window); k < len(c.Buffers); k++ {
		if err := take(k); err != nil {
			return err
		}
	}
	if c.FreeOnBoth {
		_, err := ch.Free().Wait(ctx)
		return err
	}
	return nil
}
