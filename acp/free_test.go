package acp_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
)

// TestFreeNeedsNoFurtherCall checks that the receiver gets all messages and EOF although the sender calls
// nothing after its Free. With 200 slots the operations exceed the send queue of a connection.
func TestFreeNeedsNoFurtherCall(t *testing.T) {
	for _, test := range []struct{ slots, receiverSlots, messages, size int }{
		{2, 2, 0, 0},
		{2, 2, 3, 40},
		{2, 2, 3, 9000},
		{2, 200, 129, 40},
		{1, 200, 150, 40},
	} {
		for _, net := range []acp.Net{acp.RC, acp.UD} {
			for name, o := range variants {
				for _, drop := range []bool{false, true} { // the receiver frees its end at once
					t.Run(fmt.Sprint(test, net, name, drop), func(t *testing.T) {
						ctx, cancel := context.WithTimeout(ctx, time.Minute)
						defer cancel()
						freed := make(chan struct{})
						require.NoError(t, acptest.RunOptions(2, acptest.Options{ACP: acp.Options{Net: net}}, func(p *acp.Process) error {
							o := o
							o.SlotSize, o.Slots = 4096, test.slots
							if p.Rank() == 1 {
								o.Slots = test.receiverSlots
							}
							ch, err := p.NewChannel(0, 1, o)
							if err != nil {
								return err
							}
							if p.Rank() == 0 {
								for i := range test.messages {
									ch.Send(message(test.size, i))
								}
								_, err := ch.Free().Wait(ctx)
								select {
								case <-freed:
								case <-ctx.Done():
								}
								return err
							}
							defer close(freed)
							for i := 0; i < test.messages && !drop; i++ {
								buf := make([]byte, test.size)
								if _, err := ch.Recv(buf).Wait(ctx); err != nil {
									return err
								}
								if string(buf) != string(message(test.size, i)) {
									return fmt.Errorf("message %d has other bytes", i)
								}
							}
							_, err = ch.Free().Wait(ctx)
							return err
						}))
					})
				}
			}
		}
	}
}
