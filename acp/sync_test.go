package acp_test

import (
	"context"
	"fmt"
	"runtime"
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

// TestSyncOfASleeper checks that a rank that sleeps sees the flag of a barrier and the index of a message,
// which arrive in memory without an event: nothing else ends its sleep.
func TestSyncOfASleeper(t *testing.T) {
	for _, net := range []acp.Net{acp.RC, acp.UD} {
		t.Run(fmt.Sprint("net ", net), func(t *testing.T) {
			o := acptest.Options{ACP: acp.Options{Net: net, ProbeDelay: time.Hour}}
			first := make(chan *acp.Process, 1)
			require.NoError(t, acptest.RunOptions(2, o, func(p *acp.Process) error {
				ch, err := p.NewChannel(0, 1, acp.ChannelOptions{})
				if err != nil {
					return err
				}
				var r *acp.Request
				if p.Rank() == 1 {
					first <- p
					r = ch.Recv(make([]byte, 8))
				} else {
					for one := <-first; !one.Sleeps(); {
						p.Progress()
						runtime.Gosched()
					}
					r = ch.Send(make([]byte, 8))
				}
				if _, err := r.Wait(ctx); err != nil {
					return err
				}
				return p.Sync(ctx)
			}))
		})
	}
}
