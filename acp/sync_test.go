package acp_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

// TestSyncBesideAReceive calls Sync while another goroutine waits for a message and leads: the flags of the
// barrier arrive in memory, without an event of the network.
func TestSyncBesideAReceive(t *testing.T) {
	require.NoError(t, acptest.Run(2, func(p *acp.Process) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		ch, err := p.NewChannel(0, 1, acp.ChannelOptions{})
		if err != nil {
			return err
		}
		received := make(chan error, 1)
		if p.Rank() == 1 {
			r := ch.Recv(make([]byte, 8))
			go func() {
				_, err := r.Wait(ctx)
				received <- err
			}()
		}
		for range 50 {
			if err := p.Sync(ctx); err != nil {
				return err
			}
		}
		if p.Rank() == 1 {
			return <-received
		}
		_, err = ch.Send(make([]byte, 8)).Wait(ctx)
		return err
	}))
}
