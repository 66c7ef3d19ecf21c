package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestCloseSendsPendingAck closes a receiver as soon as it has its message: the sender's request
// must succeed.
func TestCloseSendsPendingAck(t *testing.T) {
	for name, part := range map[string]func(b *end) error{
		"destroy": func(b *end) error { return b.qp.Close() },
		"close":   func(b *end) error { return b.dev.Close() },
		"reset":   func(b *end) error { return b.qp.Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.AttrState) },
		"error":   func(b *end) error { return b.qp.Modify(verbs.QPAttr{State: verbs.StateErr}, verbs.AttrState) },
	} {
		for _, how := range []string{"poll", "wait"} {
			t.Run(name+" after a "+how, func(t *testing.T) {
				for range 5 {
					a, b := pair(t, Options{})
					b.recv(t, 1, 0, 100)
					parted := make(chan error, 1)
					go func() {
						wc := make([]verbs.WC, 1)
						for n := 0; n == 0; {
							var err error
							if how == "poll" {
								n, err = b.cq.Poll(wc)
							} else {
								n, err = b.cq.PollWait(t.Context(), wc)
							}
							if err != nil {
								parted <- err
								return
							}
						}
						parted <- part(b)
					}()
					a.post(t, verbs.SendWR{WRID: 7, Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 100)}})
					require.NoError(t, <-parted)
					require.Equal(t, verbs.WCSuccess, a.next(t).Status)
					a.dev.Close()
					b.dev.Close()
				}
			})
		}
	}
}

// TestLongPostYieldsToOthers posts much more than a queue pair may send at a time: the call returns before all
// packets are sent, another queue pair's message precedes the remaining ones, and these follow at
// later polls.
func TestLongPostYieldsToOthers(t *testing.T) {
	a, b := pairOf(t, Options{NoService: true}, verbs.UC)
	other := a.newQP(t, verbs.UC)
	connect(t, a.dev, other, b.dev, b.newQP(t, verbs.UC))
	const size = 8 << 20
	a.post(t, verbs.SendWR{WRID: 1, Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{a.mr.SGE(0, size)},
		RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
	first := a.dev.Stats().Counters.SentBytes
	require.NotZero(t, first)
	require.LessOrEqual(t, first, uint64(maxDrainBatches*txBatchBytes))
	_, err := other.PostSend([]verbs.SendWR{{WRID: 2, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
	require.NoError(t, err)
	require.EqualValues(t, 2, a.next(t).WRID)
	require.EqualValues(t, 1, a.next(t).WRID)
	require.EqualValues(t, size+8, a.dev.Stats().Counters.SentBytes)
}
