package acp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/internal/faulttest"
)

// TestContextsOfWaits ends the context of each kind of wait, or lets it panic, at rank 0, while rank 1 has not
// done its part. Another goroutine of rank 0 waits at the same time. Afterwards both ranks communicate.
func TestContextsOfWaits(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		want error
	}{"ended": {ended, context.Canceled}, "panics": {faulttest.Context{Context: context.Background()}, faulttest.ErrPanic}} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
				ch, err := p.NewChannel(0, 1, acp.ChannelOptions{})
				if err != nil {
					return err
				}
				back, err := p.NewChannel(1, 0, acp.ChannelOptions{})
				if err != nil {
					return err
				}
				got := make([]byte, 8)
				if p.Rank() == 1 {
					if _, err := ch.Recv(got).Wait(ctx); err != nil { // rank 0 has tried
						return err
					}
					if _, err := back.Send(got).Wait(ctx); err != nil {
						return err
					}
					return p.Sync(ctx)
				}
				r := back.Recv(got)
				other := make(chan error, 1)
				go func() {
					_, err := r.Wait(ctx)
					other <- err
				}()
				for what, wait := range map[string]func() error{
					"Request.Wait": func() error { _, err := r.Wait(c.ctx); return err },
					"Sync":         func() error { return p.Sync(c.ctx) },
				} {
					if err := faulttest.Recover(wait); !errors.Is(err, c.want) {
						return fmt.Errorf("%s: %v, want %w", what, err, c.want)
					}
				}
				if _, err := ch.Send(got).Wait(ctx); err != nil {
					return err
				}
				return errors.Join(<-other, p.Sync(ctx))
			}))
		})
	}
}
