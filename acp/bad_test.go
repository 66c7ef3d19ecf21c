package acp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

// TestSlotSizes creates ends with different slot sizes. Both fail with both sizes, and a matching
// channel between the same ranks is not affected.
func TestSlotSizes(t *testing.T) {
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		o := acp.ChannelOptions{SlotSize: 64 << p.Rank()}
		bad, err := p.NewChannel(0, 1, o)
		require.NoError(t, err)
		mixed, err := p.NewChannel(0, 1, acp.ChannelOptions{SlotSize: 64, Imm: p.Rank() == 1})
		require.NoError(t, err)
		good, err := p.NewChannel(0, 1, acp.ChannelOptions{SlotSize: 64})
		require.NoError(t, err)
		do := func(ch *acp.Channel) error {
			if p.Rank() == 0 {
				r := ch.Send(message(1000, 0))
				_, err := r.Wait(ctx)
				return err
			}
			n, err := ch.Recv(make([]byte, 1000)).Wait(ctx)
			if err == nil && n != 1000 {
				err = fmt.Errorf("%d bytes", n)
			}
			return err
		}
		err = do(bad)
		require.ErrorIs(t, err, acp.ErrSlotSize)
		require.ErrorContains(t, err, fmt.Sprintf("%d bytes here, %d at rank %d", 64<<p.Rank(), 128>>p.Rank(), 1-p.Rank()))
		require.ErrorIs(t, do(mixed), acp.ErrMixed)
		require.NoError(t, do(good))
		_, err = bad.Free().Wait(ctx)
		require.ErrorIs(t, err, acp.ErrSlotSize)
		_, err = good.Free().Wait(ctx)
		return err
	}))
}

// TestMisuse checks that invalid channel calls fail at once.
func TestMisuse(t *testing.T) {
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		for _, c := range []struct {
			from, to int
			o        acp.ChannelOptions
			want     error
		}{
			{0, 2, acp.ChannelOptions{}, acp.ErrRank},
			{-1, 0, acp.ChannelOptions{}, acp.ErrRank},
			{1 - p.Rank(), 1 - p.Rank(), acp.ChannelOptions{}, acp.ErrRank},
			{0, 1, acp.ChannelOptions{SlotSize: 12}, acp.ErrOptions},
			{0, 1, acp.ChannelOptions{SlotSize: 8}, acp.ErrOptions},
			{0, 1, acp.ChannelOptions{Slots: -1}, acp.ErrOptions},
			{0, 1, acp.ChannelOptions{Slots: 1 << 20}, acp.ErrOptions},
			{0, 1, acp.ChannelOptions{Slots: 1 << 17, SlotSize: 1 << 30}, acp.ErrOptions},
			{0, 1, acp.ChannelOptions{Slots: 4, SlotSize: 1 << 30, Imm: true}, acp.ErrOptions},
		} {
			_, err := p.NewChannel(c.from, c.to, c.o)
			require.ErrorIs(t, err, c.want)
			var e *acp.Error
			require.True(t, errors.As(err, &e))
			require.Equal(t, p.Rank(), e.Rank)
			require.Regexp(t, fmt.Sprintf("^acp: rank %d: create channel .*: [^:]", p.Rank()), err)
			require.Equal(t, 1, strings.Count(err.Error(), "acp: "), err)
		}
		ch, err := p.NewChannel(0, 1, acp.ChannelOptions{SlotSize: 64})
		require.NoError(t, err)
		wrong := ch.Recv
		if p.Rank() == 1 {
			wrong = ch.Send
		}
		_, err = wrong(make([]byte, 8)).Wait(ctx)
		require.ErrorIs(t, err, acp.ErrRole)
		free := ch.Free()
		for _, use := range []func() *acp.Request{func() *acp.Request { return ch.Send(nil) }, func() *acp.Request { return ch.Recv(nil) }, ch.Free} {
			_, err = use().Wait(ctx)
			require.ErrorIs(t, err, acp.ErrFreed)
			require.ErrorContains(t, err, "channel 0 from rank 0 to rank 1")
		}
		_, err = free.Wait(ctx)
		require.NoError(t, err)
		_, err = ch.Free().Wait(ctx)
		require.ErrorIs(t, err, acp.ErrFreed)
		return nil
	}))
}

// TestReceiverFreesFirst frees a receiving end first. The sender can still send until it frees its
// own end.
func TestReceiverFreesFirst(t *testing.T) {
	for name, o := range variants {
		t.Run(name, func(t *testing.T) {
			o.SlotSize = 64
			runPair(t, o, o, func(_ *acp.Process, ch *acp.Channel) error {
				for i := range 50 {
					if _, err := ch.Send(message(200, i)).Wait(ctx); err != nil {
						return err
					}
				}
				_, err := ch.Free().Wait(ctx)
				return err
			}, func(_ *acp.Process, ch *acp.Channel) error {
				if _, err := ch.Recv(make([]byte, 200)).Wait(ctx); err != nil {
					return err
				}
				_, err := ch.Free().Wait(ctx)
				return err
			})
		})
	}
}

// TestRegionReuse creates and frees more channels than there are regions, one after the other.
func TestRegionReuse(t *testing.T) {
	for name, o := range variants {
		t.Run(name, func(t *testing.T) {
			o.SlotSize, o.Slots = 16, 1
			require.NoError(t, acptest.Run(1, func(p *acp.Process) error {
				for i := range 2100 { // two ends each
					in, err := p.NewChannel(0, 0, o)
					if err != nil {
						return fmt.Errorf("channel %d: %w", i, err)
					}
					out, err := p.NewChannel(0, 0, o)
					if err != nil {
						return fmt.Errorf("channel %d: %w", i, err)
					}
					r := in.Recv(make([]byte, 8))
					out.Send(make([]byte, 8))
					if n, err := r.Wait(ctx); n != 8 || err != nil {
						return fmt.Errorf("channel %d: %d bytes, %w", i, n, err)
					}
					f := out.Free()
					_, err = in.Free().Wait(ctx)
					require.NoError(t, err)
					_, err = f.Wait(ctx)
					require.NoError(t, err)
				}
				return nil
			}))
		})
	}
}
