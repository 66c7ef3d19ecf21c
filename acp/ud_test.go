package acp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/acptest"
	"github.com/softrnic/softrnic/rdm"
)

// TestOverDatagrams runs copies, atomics, invalid addresses and both kinds of channels over UD,
// with the adapter's RDMA over UD and with emulation.
func TestOverDatagrams(t *testing.T) {
	for _, emulate := range []bool{false, true} {
		t.Run(fmt.Sprintf("emulate %v", emulate), func(t *testing.T) {
			o := acptest.Options{ACP: acp.Options{Net: acp.UD, RDM: rdm.Options{Emulate: emulate}}}
			require.NoError(t, acptest.RunOptions(3, o, func(p *acp.Process) error {
				const n = 20000
				buf := make([]byte, 2*n)
				copy(buf, message(n, p.Rank()))
				mine, all, err := share(p, buf)
				require.NoError(t, err)
				left, right := (p.Rank()+2)%3, (p.Rank()+1)%3
				p.Copy(all[right].Add(n), all[left], n, acp.None) // from one neighbor to the other
				acp.FetchAdd[uint64](p, nil, p.StarterGA(0).Add(16), 1, acp.None)
				acp.FetchXor[uint32](p, nil, p.StarterGA(0).Add(24), 1<<p.Rank(), acp.None)
				require.NoError(t, p.Complete(ctx, acp.All))
				require.ErrorIs(t, p.Complete(ctx, p.Copy(all[right].Add(2*n), mine.GA(0), 8, acp.None)), acp.ErrRange)
				require.ErrorIs(t, p.Complete(ctx, p.Copy(all[right]+7<<32, mine.GA(0), 8, acp.None)), acp.ErrRegion)
				require.NoError(t, p.Sync(ctx))
				require.Equal(t, message(n, (p.Rank()+1)%3), buf[n:]) // the left neighbor's left neighbor is the right one
				if p.Rank() == 0 {
					require.EqualValues(t, 3, p.LoadStarter(16))
					require.EqualValues(t, 7, p.LoadStarter(24)|p.LoadStarter(24)>>32)
				}
				for _, imm := range []bool{false, true} {
					passAround(t, p, left, right, acp.ChannelOptions{SlotSize: 1024, Imm: imm})
				}
				return p.Sync(ctx)
			}))
		})
	}
}

// passAround passes a message on to the next rank.
func passAround(t *testing.T, p *acp.Process, left, right int, o acp.ChannelOptions) {
	in, err := p.NewChannel(left, p.Rank(), o)
	require.NoError(t, err)
	out, err := p.NewChannel(p.Rank(), right, o)
	require.NoError(t, err)
	sent := out.Send(message(9000, p.Rank()))
	buf := make([]byte, 10000)
	n, err := in.Recv(buf).Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, message(9000, left), buf[:n])
	_, err = sent.Wait(ctx)
	require.NoError(t, err)
	free := out.Free()
	_, err = in.Free().Wait(ctx)
	require.NoError(t, err)
	_, err = free.Wait(ctx)
	require.NoError(t, err)
}

// TestSenderComputes checks that completed sends are delivered without further calls of the sender,
// also if operations are queued behind each other.
func TestSenderComputes(t *testing.T) {
	for name, o := range variants {
		t.Run(name, func(t *testing.T) {
			o.SlotSize = 64
			arrived := make(chan struct{})
			require.NoError(t, acptest.RunOptions(2, acptest.Options{ACP: acp.Options{Net: acp.UD}}, func(p *acp.Process) error {
				ch, err := p.NewChannel(0, 1, o)
				require.NoError(t, err)
				if p.Rank() == 0 {
					for i := range 5 {
						_, err := ch.Send(message(100, i)).Wait(ctx)
						require.NoError(t, err)
					}
					_, err := ch.Free().Wait(ctx)
					select {
					case <-arrived:
					case <-ctx.Done():
						return ctx.Err()
					}
					return err
				}
				buf := make([]byte, 100)
				for i := range 5 {
					_, err := ch.Recv(buf).Wait(ctx)
					require.NoError(t, err)
					require.Equal(t, message(100, i), buf)
				}
				_, err = ch.Free().Wait(ctx)
				require.NoError(t, err)
				close(arrived)
				return nil
			}))
		})
	}
}
