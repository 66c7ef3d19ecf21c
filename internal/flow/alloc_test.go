package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/flow"
)

// TestNoAllocation checks that nothing is allocated after the lists have grown.
func TestNoAllocation(t *testing.T) {
	mem, ring := make([]byte, 4096), make([]byte, 4096)
	in, out := make([]byte, 100), make([]byte, 300)
	for _, d := range controlNames {
		credits := new(flow.Credits)
		credits.Start(64)
		var s flow.Sender
		var r flow.Receiver
		switch d {
		case flow.NIC:
			s, r = flow.NewNICSender(mem, len(mem), len(ring), 256, 32), flow.NewNICReceiver(ring, 256, 32)
		case flow.RDMA:
			s, r = flow.NewRDMASender(mem, len(mem), len(ring), 32, credits), flow.NewRDMAReceiver(ring, 32)
		case flow.Credit:
			s, r = flow.NewCreditSender(mem, 128, 16, 112, 32, credits), flow.NewCreditReceiver(64)
		}
		slot, took := 0, uint32(0)
		round := func() {
			require.Equal(t, len(in), s.Write(in))
			for m, ok := s.Next(); ok; m, ok = s.Next() {
				took = credits.NextSeq()
				switch r := r.(type) {
				case flow.RingReceiver:
					require.NoError(t, r.Deliver(m.Remote, m.Len))
				case *flow.CreditReceiver:
					require.NoError(t, r.Deliver(slot, in))
				}
				if m.Signal {
					s.CompleteUpTo(m.End())
				}
			}
			r.Read(out)
			switch r := r.(type) {
			case *flow.RDMAReceiver:
				if freed, due := r.ReportFreed(false); due {
					require.True(t, s.(*flow.RDMASender).SetFreed(freed))
				}
			case *flow.CreditReceiver:
				slot, _ = r.PopFreed()
			}
			credits.Update(64, took)
		}
		for range 100 {
			round()
		}
		require.Zero(t, testing.AllocsPerRun(1000, round), "%v", d)
	}
}
