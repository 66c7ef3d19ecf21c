//go:build interop && linux

package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/interop/lab"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestMulticast checks that messages to a group arrive at the other side, which has joined
// by RDMA-CM. On rxe the program is mckey of rdmacm-utils.
func TestMulticast(t *testing.T) {
	g := lab.Need(t)
	const messages, size, front = 5, 100, 40
	group := netip.MustParseAddr("239.4.7.92")
	for _, k := range kinds {
		cell(t, behaviourT, k.String(), []string{"multicast", ""}, k.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), runTime)
			defer cancel()
			dev, err := rnic.Open(rnic.Options{Addr: netip.AddrPortFrom(lab.HostIPv4, 4791)})
			require.NoError(t, err)
			defer dev.Close()
			m, err := cm.New(dev, cm.Options{})
			require.NoError(t, err)
			defer m.Close()
			pd, err := dev.AllocPD()
			require.NoError(t, err)
			cq, err := dev.CreateCQ(2 * messages)
			require.NoError(t, err)
			mr, err := pd.RegMR(make([]byte, messages*(front+size)), verbs.AccessLocalWrite)
			require.NoError(t, err)
			qp, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: cq, RecvCQ: cq,
				Cap: verbs.QPCap{MaxSendWR: messages, MaxRecvWR: messages, MaxSendSGE: 1, MaxRecvSGE: 1}})
			require.NoError(t, err)
			receives := func(qp verbs.QP) error {
				for i := range messages {
					if _, err := qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{mr.SGE(i*(front+size), front+size)}}}); err != nil {
						return err
					}
				}
				return nil
			}
			joined, err := m.Join(group, cm.UDQueuePair{QP: qp, Prepare: receives})
			require.NoError(t, err)

			args := []string{"mckey", "-m", group.String(), "-b", lab.GuestIPv4.String(), "-C", fmt.Sprint(messages), "-S", fmt.Sprint(size)}
			var wc [1]verbs.WC
			if k.a == "rxe" {
				for got := 0; got < messages; { // lost datagrams are not retransmitted
					_, err := g.Output(ctx, append(args, "-s")...)
					require.NoError(t, err)
					for got < messages {
						soon, cancel := context.WithTimeout(ctx, quiet)
						_, err := cq.PollWait(soon, wc[:])
						cancel()
						if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
							break
						}
						require.NoError(t, err)
						require.NoError(t, wc[0].Err())
						require.EqualValues(t, front+size, wc[0].ByteLen)
						require.Equal(t, wc[0].SrcQPN, wc[0].Imm, "mckey sends its QPN as immediate data")
						got++
					}
				}
				return
			}
			ah, err := pd.CreateAH(joined.AH)
			require.NoError(t, err)
			var out bytes.Buffer
			p, err := g.Start(ctx, &out, &out, args...)
			require.NoError(t, err)
			exited := make(chan error, 1)
			go func() { exited <- p.Wait() }()
			for running := true; running; { // until mckey has joined and received all its messages
				_, err := qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSendWithImm, Flags: verbs.SendSignaled, Imm: qp.Num(),
					SGList: []verbs.SGE{mr.SGE(0, size)}, AH: ah, RemoteQPN: joined.QPN, RemoteQKey: joined.QKey}})
				require.NoError(t, err)
				for sent := false; !sent; { // messages looped back to us consume receives
					_, err := cq.PollWait(ctx, wc[:])
					require.NoError(t, err)
					require.NoError(t, wc[0].Err())
					sent = !wc[0].Opcode.IsRecv()
				}
				select {
				case err := <-exited:
					require.NoError(t, err, "%s", &out)
					running = false
				case <-time.After(quiet / 10):
				}
			}
			require.Contains(t, out.String(), "data transfers complete")
		})
	}
}
