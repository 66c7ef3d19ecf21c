package rnic

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/verbs"
)

// takers are the ways to get completions: polling drives both ends in one goroutine, waiting leaves
// the other end to its service.
var takers = map[string]func(e, other *end, wc []verbs.WC) (int, error){
	"poll": func(e, other *end, wc []verbs.WC) (int, error) {
		other.dev.Progress()
		return e.cq.Poll(wc)
	},
	"wait": func(e, _ *end, wc []verbs.WC) (int, error) { return e.cq.PollWait(context.Background(), wc) },
}

// TestNoAllocation posts and completes requests of every kind, alone and in lists, and checks that
// neither end allocates per request or packet.
func TestNoAllocation(t *testing.T) {
	if racesync.Enabled {
		t.Skip("the race detector allocates")
	}
	if strings.Contains(os.Getenv(EnvLink), "portable") {
		t.Skip("the portable link makes a timer for each wait")
	}
	kinds := map[string]struct {
		typ      verbs.QPType
		receives int
		wr       func(a, b *end, ah verbs.AH) verbs.SendWR
	}{
		"send": {verbs.RC, 1, func(a, b *end, _ verbs.AH) verbs.SendWR {
			return verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 10), a.mr.SGE(50, 20)}}
		}},
		"inline": {verbs.RC, 1, func(a, b *end, _ verbs.AH) verbs.SendWR {
			return verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: make([]byte, 8)}
		}},
		"write": {verbs.RC, 0, func(a, b *end, _ verbs.AH) verbs.SendWR { return writeTo(a, b.mr, 8) }},
		"large": {verbs.RC, 0, func(a, b *end, _ verbs.AH) verbs.SendWR { return writeTo(a, b.mr, 100_000) }},
		"write with immediate": {verbs.RC, 1, func(a, b *end, _ verbs.AH) verbs.SendWR {
			wr := writeTo(a, b.mr, 5000)
			wr.Opcode = verbs.WRRDMAWriteWithImm
			return wr
		}},
		"read": {verbs.RC, 0, func(a, b *end, _ verbs.AH) verbs.SendWR {
			wr := writeTo(a, b.mr, 10_000)
			wr.Opcode = verbs.WRRDMARead
			return wr
		}},
		"atomic":   {verbs.RC, 0, func(a, b *end, _ verbs.AH) verbs.SendWR { return atomicTo(a, b, 0) }},
		"UC write": {verbs.UC, 0, func(a, b *end, _ verbs.AH) verbs.SendWR { return writeTo(a, b.mr, 8) }},
		"datagram": {verbs.UD, 1, func(a, b *end, ah verbs.AH) verbs.SendWR {
			return verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{a.mr.SGE(0, 100)}, AH: ah, RemoteQPN: b.qp.Num(), RemoteQKey: qkey}
		}},
	}
	for name, kind := range kinds {
		for _, list := range []int{1, 32} {
			for how, next := range takers {
				t.Run(fmt.Sprintf("%s x%d %s", name, list, how), func(t *testing.T) {
					a, b := pairOf(t, Options{NoService: how == "poll"}, kind.typ)
					var ah verbs.AH
					if kind.typ == verbs.UD {
						ah = a.handle(t, b.dev)
					}
					wr := kind.wr(a, b, ah)
					wr.Flags |= verbs.SendSignaled
					wrs := slices.Repeat([]verbs.SendWR{wr}, list)
					recvs := slices.Repeat([]verbs.RecvWR{{SGList: []verbs.SGE{b.mr.SGE(0, 200)}}}, list*kind.receives)
					wc := make([]verbs.WC, 8)
					take := func(e, other *end, want int) {
						for got := 0; got < want; {
							n, err := next(e, other, wc)
							if err != nil {
								panic(err)
							}
							for i := range n {
								if wc[i].Status != verbs.WCSuccess {
									panic(wc[i].Err())
								}
							}
							got += n
						}
					}
					work := func() {
						if _, err := b.qp.PostRecv(recvs); err != nil {
							panic(err)
						}
						if _, err := a.qp.PostSend(wrs); err != nil {
							panic(err)
						}
						take(b, a, len(recvs))
						take(a, b, list)
					}
					allocs := 1.0
					for attempts := 5; allocs > 0 && attempts > 0; attempts-- { // queues grow, also after a timeout
						for range 20 {
							work()
						}
						allocs = testing.AllocsPerRun(50, work)
					}
					require.Zero(t, allocs)
				})
			}
		}
	}
}

// TestBlockedWaitAllocatesNothing checks a PollWait that finds no completion, which TestNoAllocation
// reaches by chance only.
func TestBlockedWaitAllocatesNothing(t *testing.T) {
	if racesync.Enabled {
		t.Skip("the race detector allocates")
	}
	e := newEnd(t, Options{})
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	wc := make([]verbs.WC, 1)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := e.cq.PollWait(ended, wc); err != context.Canceled {
			panic(err)
		}
	}))
}
