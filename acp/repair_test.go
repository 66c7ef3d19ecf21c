package acp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

// TestSignalsOutliveRepair checks that a busy rank still receives the signals that were sent before an
// unrelated operation was refused and the connection was replaced.
func TestSignalsOutliveRepair(t *testing.T) {
	busy, refused := make(chan struct{}), make(chan struct{})
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		ch, err := p.NewChannel(0, 1, acp.ChannelOptions{SlotSize: 64, Imm: true})
		if err != nil {
			return err
		}
		mine, all, err := share(p, make([]byte, 64))
		if err != nil {
			return err
		}
		if p.Rank() == 0 {
			require.NoError(t, p.Complete(ctx, p.Copy(all[1], mine.GA(0), 8, acp.None)), "it is known from now on")
			if _, err := ch.Send([]byte("first")).Wait(ctx); err != nil {
				return err
			}
		} else if _, err := ch.Recv(make([]byte, 8)).Wait(ctx); err != nil {
			return err
		} else if err := mine.Close(); err != nil {
			return err
		}
		if err := p.Sync(ctx); err != nil {
			return err
		}
		if p.Rank() == 0 {
			defer func() {
				select {
				case <-refused:
				default:
					close(refused)
				}
			}()
			select {
			case <-busy:
			case <-ctx.Done():
				return ctx.Err()
			}
			if _, err := ch.Send([]byte("second")).Wait(ctx); err != nil {
				return err
			}
			require.ErrorIs(t, p.Complete(ctx, p.Copy(all[1], mine.GA(0), 8, acp.None)), acp.ErrRegion)
			require.NoError(t, p.Complete(ctx, p.Copy(mine.GA(0), p.StarterGA(1), 8, acp.None)), "by another connection")
			require.Positive(t, p.Stats().Repaired)
			close(refused)
			return p.Sync(ctx)
		}
		close(busy)
		<-refused
		buf := make([]byte, 8)
		if n, err := ch.Recv(buf).Wait(ctx); err != nil || string(buf[:n]) != "second" {
			return fmt.Errorf("%q: %w", buf[:n], err)
		}
		require.Zero(t, p.Stats().StraySignals)
		return p.Sync(ctx)
	}))
}
