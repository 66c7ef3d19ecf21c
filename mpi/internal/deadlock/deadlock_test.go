package deadlock_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
)

// call is a call that waits for all, or any, of some ranks.
func call(any bool, ranks ...int) deadlock.Call {
	return deadlock.Call{What: "Recv", Millis: 5000, For: ranks, Any: any, Unmet: true}
}

func state(rank int, calls ...deadlock.Call) *deadlock.State {
	return &deadlock.State{Rank: rank, Quiet: 5000, Calls: calls}
}

func TestKnots(t *testing.T) {
	young := call(false, 0)
	young.Millis = 10
	aside := call(false, 1)
	aside.Aside = true
	busy := state(1, call(false, 0))
	busy.Quiet = 10
	polls := call(false, 0)
	polls.Polls = true
	works := polls
	works.Busy = true
	for name, c := range map[string]struct {
		size   int
		states []*deadlock.State
		knot   []int
		cycle  []int
	}{
		"two":                               {2, []*deadlock.State{state(0, call(false, 1)), state(1, call(false, 0))}, []int{0, 1}, []int{0, 1}},
		"one computes":                      {2, []*deadlock.State{state(0, call(false, 1)), state(1)}, nil, nil},
		"one is silent":                     {2, []*deadlock.State{state(0, call(false, 1))}, nil, nil},
		"one has just begun":                {2, []*deadlock.State{state(0, call(false, 1)), state(1, young)}, nil, nil},
		"one makes calls":                   {2, []*deadlock.State{state(0, call(false, 1)), busy}, nil, nil},
		"in the background":                 {2, []*deadlock.State{state(0, aside), state(1, call(false, 0))}, nil, nil},
		"one polls":                         {2, []*deadlock.State{state(0, call(false, 1)), state(1, polls)}, []int{0, 1}, []int{0, 1}},
		"one polls and works":               {2, []*deadlock.State{state(0, call(false, 1)), state(1, works)}, nil, nil},
		"one polls this and that":           {3, []*deadlock.State{state(0, call(false, 1)), state(1, polls, call(false, 2)), state(2)}, nil, nil},
		"itself":                            {1, []*deadlock.State{state(0, call(false, 0))}, []int{0}, []int{0}},
		"any of those that cannot":          {3, []*deadlock.State{state(0, call(true, 0, 1, 2)), state(1, call(false, 0)), state(2, call(true, 0, 1))}, []int{0, 1, 2}, []int{0, 1}},
		"any, one of which computes":        {3, []*deadlock.State{state(0, call(true, 1, 2)), state(1, call(false, 0)), state(2)}, nil, nil},
		"all, one of which computes":        {3, []*deadlock.State{state(0, call(false, 1, 2)), state(1, call(false, 0)), state(2)}, []int{0, 1}, []int{0, 1}},
		"another goroutine can":             {3, []*deadlock.State{state(0, call(false, 1), call(false, 2)), state(1, call(false, 0)), state(2)}, nil, nil},
		"behind a cycle":                    {4, []*deadlock.State{state(0, call(false, 2)), state(1, call(false, 2)), state(2, call(false, 3)), state(3, call(false, 2))}, []int{0, 1, 2, 3}, []int{2, 3}},
		"for unknown ranks":                 {1, []*deadlock.State{state(0, call(false))}, nil, nil},
		"for one that there is not":         {1, []*deadlock.State{state(0, call(false, 7))}, nil, nil},
		"a state twice, and one of no rank": {2, []*deadlock.State{state(0, call(false, 1)), state(0), state(1, call(false, 0)), state(9), state(-1)}, []int{0, 1}, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := deadlock.Analyze(c.size, c.states, 1000)
			require.Equal(t, c.knot, r.Knot)
			var cycle []int
			for _, e := range r.Cycle {
				cycle = append(cycle, e.Rank)
			}
			require.Equal(t, c.cycle, cycle)
			require.Equal(t, c.knot != nil, r.IsStuck(5000))
			require.False(t, r.IsStuck(5001))
			require.Equal(t, c.knot != nil, strings.Contains(r.String(), "Deadlock"))
		})
	}
}

// TestKnotAgainstRuns checks that the knot has exactly the ranks that remain when all ranks that
// can continue do so, in any order, and that the cycle is a part of it.
func TestKnotAgainstRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 8).Draw(t, "size")
		rank := rapid.IntRange(0, size-1)
		var states []*deadlock.State
		for r := range size {
			if rapid.IntRange(0, 9).Draw(t, "silent") == 0 {
				continue
			}
			s := state(r)
			for range rapid.SampledFrom([]int{0, 1, 1, 1, 1, 2}).Draw(t, "calls") {
				s.Calls = append(s.Calls, call(rapid.Bool().Draw(t, "any"), rapid.SliceOfNDistinct(rank, 1, size, rapid.ID).Draw(t, "for")...))
			}
			states = append(states, s)
		}
		// Ranks continue in random order if no other rank blocks them.
		alive := map[int]bool{}
		for r := range size {
			alive[r] = !slices.ContainsFunc(states, func(s *deadlock.State) bool { return s.Rank == r && len(s.Calls) > 0 })
		}
		for range size {
			for _, i := range rapid.Permutation(slices.Collect(seq(len(states)))).Draw(t, "order") {
				for _, c := range states[i].Calls {
					n := 0
					for _, r := range c.For {
						if alive[r] {
							n++
						}
					}
					if n == len(c.For) || c.Any && n > 0 {
						alive[states[i].Rank] = true
					}
				}
			}
		}
		r := deadlock.Analyze(size, states, 1000)
		for rank := range size {
			if alive[rank] == slices.Contains(r.Knot, rank) {
				t.Fatalf("rank %d: alive %v, knot %v", rank, alive[rank], r.Knot)
			}
		}
		if (len(r.Knot) > 0) != (len(r.Cycle) > 0) {
			t.Fatalf("knot %v without a cycle", r.Knot)
		}
		for i, e := range r.Cycle {
			if !slices.Contains(r.Knot, e.Rank) || !slices.Contains(e.Call.For, e.For) || e.For != r.Cycle[(i+1)%len(r.Cycle)].Rank {
				t.Fatalf("%+v is no cycle in %v", r.Cycle, r.Knot)
			}
		}
		_ = r.String()
	})
}

// TestFormatPolls checks that polled calls are reported as polled.
func TestFormatPolls(t *testing.T) {
	polls := deadlock.Call{What: "Recv(source 1, tag 5)", At: "ring/main.go:9", For: []int{1}, Millis: 5000, Polls: true, Why: "8 bytes are on their way"}
	works := polls
	works.Busy, works.For, works.Any, works.Why = true, []int{0, 2}, true, ""
	text := deadlock.Analyze(3, []*deadlock.State{state(0, polls), state(1, works)}, 0).String()
	require.Equal(t, `What the ranks do:
    rank 0: polls Recv(source 1, tag 5) at ring/main.go:9, which waits for rank 1 (8 bytes are on their way), for 5.0 s
    rank 1: polls Recv(source 1, tag 5) at ring/main.go:9, which waits for any of ranks 0 and 2 (it computes in between), for 5.0 s
    rank 2: no reply
`, text)
	other := polls
	other.For = []int{0}
	text = deadlock.Analyze(2, []*deadlock.State{state(0, polls), state(1, other)}, 0).String()
	require.Contains(t, text, "    rank 0 polls Recv(source 1, tag 5) at ring/main.go:9 for rank 1, for 5.0 s\n")
	require.Contains(t, text, "makes a call, or stops polling.\n")
}

func seq(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func collective(comm uint32, seq uint32, what, with string) *deadlock.Collective {
	return &deadlock.Collective{Comm: comm, Ranks: 7, Name: fmt.Sprint("c", comm), Seq: seq, What: what, With: with}
}

func in(rank int, c *deadlock.Collective) *deadlock.State {
	return state(rank, deadlock.Call{What: c.String(), Collective: c, At: "ring/main.go:9", For: []int{0}, Millis: 5000})
}

func TestMismatches(t *testing.T) {
	a, b := collective(1, 14, "allreduce", "of 8 float64 with sum"), collective(1, 14, "barrier", "")
	begun := func(rank int, c deadlock.Collective) *deadlock.State {
		c.Begun, c.With = true, ""
		return &deadlock.State{Rank: rank, Collectives: []deadlock.Collective{c}}
	}
	require.Equal(t, `Collective calls of c1 that do not match:
    ranks 0 to 2: allreduce #14 of 8 float64 with sum at ring/main.go:9
    rank 3: barrier #14 at ring/main.go:9
`, head(deadlock.Analyze(4, []*deadlock.State{in(0, a), in(3, b), in(1, a), in(2, a)}, 0)))
	require.Equal(t, `Collective calls of c1 that do not match:
    ranks 0 and 2: allreduce #14 of 8 float64 with sum at ring/main.go:9
    rank 1: barrier #14
`, head(deadlock.Analyze(3, []*deadlock.State{in(0, a), begun(1, *b), begun(2, *a)}, 0)))
	root := func(n int) *deadlock.Collective { return collective(1, 2, "bcast", fmt.Sprintf("with root %d", n)) }
	require.Len(t, deadlock.Analyze(2, []*deadlock.State{in(0, root(0)), in(1, root(1))}, 0).Mismatches, 1)

	for _, states := range [][]*deadlock.State{
		{in(0, a), in(1, a)},
		{in(0, a), in(1, collective(1, 15, "barrier", ""))}, // rank 1 is in a later call
		{in(0, a), in(1, collective(2, 14, "barrier", ""))}, // on another communicator
		{in(0, a), begun(1, *a)},
		{begun(0, *a), begun(1, *b)}, // no rank waits
	} {
		require.Empty(t, deadlock.Analyze(2, states, 0).Mismatches)
	}
	other := *b
	other.Ranks = 8 // the same context id, other ranks
	require.Empty(t, deadlock.Analyze(2, []*deadlock.State{in(0, a), in(1, &other)}, 0).Mismatches)
}

func head(r *deadlock.Report) string {
	text, _, _ := strings.Cut(r.String(), "What the ranks do")
	text, _, _ = strings.Cut(text, "Deadlock")
	return text
}

// TestManyRanks checks that the report stays short, whatever the number of ranks.
func TestManyRanks(t *testing.T) {
	const n = 5000
	var states []*deadlock.State
	for r := range n {
		s := state(r, deadlock.Call{What: fmt.Sprint("Recv from ", (r+1)%n), For: []int{(r + 1) % n}, Millis: 5000})
		for i := range deadlock.MaxListed + 9 {
			if !deadlock.AddMessage(&s.Messages, deadlock.Message{From: i, To: deadlock.Any, Tag: i / 3}) {
				s.More++
			}
		}
		states = append(states, s)
	}
	r := deadlock.Analyze(n+100, states, 1000)
	require.Len(t, r.Cycle, n)
	text := r.String()
	require.Less(t, len(text), 16<<10)
	require.Contains(t, text, "and 4960 more")
	require.Contains(t, text, "ranks 5000 to 5099: no reply")
}

func TestStateRoundTrip(t *testing.T) {
	s := state(3, call(true, 1, 2))
	s.Collectives = []deadlock.Collective{*collective(1, 2, "bcast", "")}
	deadlock.AddMessage(&s.Sends, deadlock.Message{Comm: "world", From: deadlock.Any, To: 2, Tag: 5, Bytes: 8})
	deadlock.AddMessage(&s.Sends, deadlock.Message{Comm: "world", From: deadlock.Any, To: 2, Tag: 5, Bytes: 9})
	require.Len(t, s.Sends, 1)
	require.Equal(t, "2 times to 2, tag 5, 8 bytes", s.Sends[0].String())
	got, err := deadlock.DecodeState(s.AppendJSON(nil))
	require.NoError(t, err)
	require.Equal(t, s, got)
	_, err = deadlock.DecodeState([]byte("{"))
	require.Error(t, err)
}

func TestRanks(t *testing.T) {
	for want, list := range map[string][]int{
		"no rank": {}, "rank 3": {3}, "ranks 3 and 5": {3, 5}, "ranks 0 to 2 and 5": {0, 1, 2, 5}, "ranks 0 to 3": {0, 1, 2, 3},
		"ranks 0, 2, 4, 6, 8, 10, 12, 14 and 2 more": {0, 2, 4, 6, 8, 10, 12, 14, 16, 18},
	} {
		require.Equal(t, want, deadlock.FormatRanks(list))
	}
}

// FuzzReport analyzes arbitrary states.
func FuzzReport(f *testing.F) {
	f.Add(state(1, deadlock.Call{Polls: true, Busy: true, For: []int{2}}).AppendJSON(nil), state(2, deadlock.Call{Polls: true, For: []int{1}}).AppendJSON(nil))
	f.Add(state(1, call(true, 1, 2)).AppendJSON(nil), in(0, collective(1, 2, "bcast", "")).AppendJSON(nil))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var states []*deadlock.State
		for _, text := range [][]byte{a, b} {
			if s, err := deadlock.DecodeState(text); err == nil {
				states = append(states, s)
			}
		}
		r := deadlock.Analyze(3, states, 0)
		r.IsStuck(10)
		_ = r.String()
	})
}

func Example() {
	states := []*deadlock.State{
		{Rank: 0, Quiet: 31_000, Calls: []deadlock.Call{{What: "Recv(source 1, tag 5)", At: "ring/main.go:23", Millis: 31_000, For: []int{1}, Unmet: true}}},
		{Rank: 1, Quiet: 30_000, Calls: []deadlock.Call{{What: "Recv(source 0, tag 7)", At: "ring/main.go:27", Millis: 30_000, For: []int{0}, Unmet: true}}},
		{Rank: 2, Quiet: 12_000, Last: "Send(dest 0, tag 5)"},
	}
	fmt.Print(deadlock.Analyze(3, states, 1000))
	// Output:
	// Deadlock: ranks 0 and 1 wait for one another:
	//     rank 0 waits in Recv(source 1, tag 5) at ring/main.go:23 for rank 1, for 31 s
	//     rank 1 waits in Recv(source 0, tag 7) at ring/main.go:27 for rank 0, for 30 s
	//     None of these messages has been sent.
	//     It ends only if another goroutine of these ranks makes a call.
	// What the ranks do:
	//     rank 0: Recv(source 1, tag 5) at ring/main.go:23 waits for rank 1, for 31 s
	//     rank 1: Recv(source 0, tag 7) at ring/main.go:27 waits for rank 0, for 30 s
	//     rank 2: in no call of MPI after Send(dest 0, tag 5), for 12 s
}
