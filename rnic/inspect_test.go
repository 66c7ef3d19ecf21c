package rnic

import (
	"encoding/json"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// write writes n bytes from a to b and waits for the completion.
func write(t testing.TB, a, b *end, n int) {
	_, err := a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		SGList: []verbs.SGE{a.mr.SGE(0, n)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}})
	require.NoError(t, err)
	a.poll1(t)
}

func TestInspect(t *testing.T) {
	a, b := pair(t, Options{Name: "here"})
	write(t, a, b, 10000)

	s := a.dev.Inspect()
	require.Equal(t, "here", s.Device.Name)
	require.Equal(t, a.dev.Addr().String(), s.Device.Addr)
	require.Equal(t, "PORT_ACTIVE", s.Device.State)
	require.Equal(t, 4096, s.Device.ActiveMTU)
	require.True(t, s.Device.Service)
	require.Equal(t, maxQPWR, s.Device.Limits.MaxQPWR)

	require.Len(t, s.QPs, 1)
	q := s.QPs[0]
	require.Equal(t, a.qp.Num(), q.Num)
	require.Equal(t, "RC", q.Type)
	require.Equal(t, "RTS", q.State)
	require.Equal(t, b.dev.Addr().String(), q.Peer)
	require.Equal(t, b.qp.Num(), q.DestQPN)
	require.Equal(t, 4096, q.PathMTU)
	require.EqualValues(t, 103, q.SQPSN, "three packets from 100")
	require.EqualValues(t, 0xfffff0, q.RQPSN)
	require.Equal(t, []int{0, 128, 0, 128}, []int{q.SendQueued, q.SendMax, q.RecvQueued, q.RecvMax})
	require.EqualValues(t, 10000, q.Counters.SentBytes)
	require.Equal(t, q.Counters, s.Counters.QPCounters)
	require.Empty(t, q.History, "it has not failed")

	require.Equal(t, []CQInfo{{Num: 1, Depth: 1024, Armed: s.CQs[0].Armed, Users: 2}}, s.CQs)
	require.EqualValues(t, s.Link.SentPackets, s.Counters.SentPkts)
	inUse := map[string]int{}
	for _, o := range s.Objects {
		inUse[o.Kind] = o.InUse
		require.Positive(t, o.Max)
	}
	require.Equal(t, map[string]int{"pd": 1, "cq": 1, "qp": 1, "srq": 0, "mr": 1, "mw": 0, "ah": 0}, inUse)
	require.Len(t, s.Drops, int(wire.NumDrops)-1)

	one, ok := a.dev.InspectQP(q.Num)
	require.True(t, ok)
	last := one.History[len(one.History)-1]
	require.Equal(t, "<- RC_ACKNOWLEDGE psn 102 ACK with 0 credits", last.Text)
	require.LessOrEqual(t, last.At, s.Now)
	_, ok = a.dev.InspectQP(q.Num + 1)
	require.False(t, ok)
}

func TestInspectQueues(t *testing.T) {
	a, b := pair(t, Options{})
	_, err := b.qp.PostRecv(make([]verbs.RecvWR, 5))
	require.NoError(t, err)
	require.NoError(t, b.cq.ReqNotify(true))
	second, err := b.dev.CreateCQ(7)
	require.NoError(t, err)
	require.NoError(t, second.ReqNotify(false))
	require.NoError(t, a.qp.Close())

	s := b.dev.Inspect()
	require.Equal(t, 5, s.QPs[0].RecvQueued)
	require.Equal(t, []CQInfo{{Num: 1, Depth: 1024, Armed: "solicited", Users: 2}, {Num: 2, Depth: 7, Armed: "any"}}, s.CQs)
}

// TestInspectDestroyed checks that the counts of a queue pair remain in the sums after it is
// closed.
func TestInspectDestroyed(t *testing.T) {
	a, b := pair(t, Options{})
	write(t, a, b, 100)
	before := a.dev.Inspect()
	require.Zero(t, before.ClosedQPs)
	require.NoError(t, a.qp.Close())
	after := a.dev.Inspect()
	require.Empty(t, after.QPs)
	require.Equal(t, before.Counters, after.Counters)
	require.Equal(t, before.QPs[0].Counters, after.ClosedQPs)
}

// TestInspectMonotonic checks that no sum decreases while queue pairs are closed.
func TestInspectMonotonic(t *testing.T) {
	a, b := newEnd(t, Options{}), newEnd(t, Options{})
	ah, err := a.pd.CreateAH(verbs.AHAttr{DGID: verbs.GIDFromAddr(b.dev.Addr().Addr()), UDPPort: b.dev.Addr().Port()})
	require.NoError(t, err)
	const rounds = 200
	done := make(chan error)
	go func() {
		var err error
		for i := 0; i < rounds && err == nil; i++ {
			err = a.sendAndDestroy(ah)
		}
		done <- err
	}()
	var last uint64
	for running := true; running; {
		select {
		case err := <-done:
			require.NoError(t, err)
			running = false
		default:
		}
		sum := a.dev.Inspect().Counters.SentPkts
		require.GreaterOrEqual(t, sum, last)
		last = sum
	}
	require.EqualValues(t, rounds, last)
}

// sendAndDestroy sends one datagram through a queue pair of its own.
func (e *end) sendAndDestroy(ah verbs.AH) error {
	q, err := e.pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: e.cq, RecvCQ: e.cq, Cap: verbs.QPCap{MaxSendWR: 1}})
	if err != nil {
		return err
	}
	if err := verbs.ActivateUD(q, 1, 0); err != nil {
		return err
	}
	if _, err := q.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, AH: ah, RemoteQPN: 17, RemoteQKey: 1}}); err != nil {
		return err
	}
	return q.Close()
}

func TestInspectFailed(t *testing.T) {
	a, b := pair(t, Options{})
	_, err := a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		SGList: []verbs.SGE{a.mr.SGE(0, 8)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey() + 1}})
	require.NoError(t, err)
	var wc [1]verbs.WC
	_, err = a.cq.PollWait(t.Context(), wc[:])
	require.NoError(t, err)
	require.Equal(t, verbs.WCRemAccessErr, wc[0].Status)

	q := a.dev.Inspect().QPs[0]
	require.Equal(t, "ERR", q.State)
	require.EqualValues(t, 1, q.Counters.SendErr)
	require.Equal(t, "state ERR", q.History[len(q.History)-1].Text, "a failed queue pair brings its history along")
	require.Contains(t, q.History[len(q.History)-2].Text, "NAK")
}

func TestInspectFaults(t *testing.T) {
	a, b := pair(t, Options{Impair: "drop 1st WRITE; mark ecn"})
	write(t, a, b, 100)
	f := a.dev.Inspect().Faults
	require.EqualValues(t, 1, f.Counters.Dropped)
	require.Len(t, f.Rules, 2)
	require.EqualValues(t, 1, f.Rules[0].Applied)
	require.NoError(t, a.dev.SetImpair(""))
	require.Empty(t, a.dev.Inspect().Faults.Spec)
	require.Nil(t, newEnd(t, Options{}).dev.Inspect().Faults)
}

// TestSnapshotNames compares the JSON names with testdata/snapshot-names.txt. Scripts use them:
// names may be added, not removed.
func TestSnapshotNames(t *testing.T) {
	net := memory.NewLive()
	conn, err := net.Attach(netip.MustParseAddrPort("192.0.2.1:4791"), memory.Options{})
	require.NoError(t, err)
	d, err := Open(Options{hooks: rnichook.Hooks{Conn: conn}, Impair: "loss 1%; drop 1st ACK"})
	require.NoError(t, err)
	defer d.Close()
	s := d.Inspect()
	s.QPs = []QPInfo{{Peer: "x", DestQPN: 1, PathMTU: 1, SharedQueue: true, History: []Record{{}}}}
	s.CQs = []CQInfo{{Overrun: true, Unsignaled: 1, Hint: "x"}}

	b, err := json.Marshal(s)
	require.NoError(t, err)
	var tree any
	require.NoError(t, json.Unmarshal(b, &tree))
	var names []string
	paths(tree, "", func(p string) { names = append(names, p) })
	slices.Sort(names)
	text, err := os.ReadFile("testdata/snapshot-names.txt")
	require.NoError(t, err)
	require.Equal(t, string(text), strings.Join(slices.Compact(names), "\n")+"\n")
}

// paths calls f with the path of every leaf.
func paths(tree any, path string, f func(string)) {
	switch v := tree.(type) {
	case map[string]any:
		for name, sub := range v {
			paths(sub, path+"."+name, f)
		}
	case []any:
		for _, sub := range v {
			paths(sub, path+"[]", f)
		}
	default:
		f(path)
	}
}

// TestLayers checks that a layer is in the snapshot of its device until it is removed.
func TestLayers(t *testing.T) {
	e := newEnd(t, Options{})
	require.Empty(t, e.dev.Inspect().Layers)
	text, err := json.Marshal(e.dev.Inspect())
	require.NoError(t, err)
	require.NotContains(t, string(text), "layers")

	n := uint64(0)
	counters := func(yield func(string, uint64) bool) {
		n++
		_ = yield("asked", n) && yield("open", 7)
	}
	remove := e.dev.AddLayer("cm", counters, "open")
	again := e.dev.AddLayer("cm", counters, "open")
	s := e.dev.Inspect()
	require.Equal(t, []LayerInfo{
		{"cm", []LayerCounter{{"asked", 1, false}, {"open", 7, true}}},
		{"cm", []LayerCounter{{"asked", 2, false}, {"open", 7, true}}},
	}, s.Layers)
	text, err = json.Marshal(s.Layers[:1])
	require.NoError(t, err)
	require.JSONEq(t, `[{"name":"cm","counters":[{"name":"asked","value":1},{"name":"open","value":7,"level":true}]}]`, string(text))
	remove()
	remove()
	require.Len(t, e.dev.Inspect().Layers, 1)
	again()
	require.Empty(t, e.dev.Inspect().Layers)
}
