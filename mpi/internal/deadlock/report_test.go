package deadlock_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
)

// TestLeftOff checks that omitted items are counted under their title, whether the rank or the
// report has omitted them.
func TestLeftOff(t *testing.T) {
	messages := func(n, count int) (list []deadlock.Message) {
		for i := range n {
			list = append(list, deadlock.Message{From: 0, To: deadlock.Any, Tag: i, Bytes: 8, Count: count})
		}
		return list
	}
	title := map[string]string{"messages": "Messages that have come and have no receive", "receives": "Receives that wait for their message", "sends": "Sends that wait"}
	for _, c := range []struct {
		name   string
		states []*deadlock.State
		want   map[string]string // last line by title; the other titles have none
	}{
		{"a rank's messages", []*deadlock.State{{Messages: messages(1, 1), Left: deadlock.Left{Messages: 5}}}, map[string]string{"messages": "and 5 more of these"}},
		{"a rank's receives", []*deadlock.State{{Receives: messages(1, 1), Left: deadlock.Left{Receives: 5}}}, map[string]string{"receives": "and 5 more of these"}},
		{"a rank's sends", []*deadlock.State{{Sends: messages(1, 1), Left: deadlock.Left{Sends: 5}}}, map[string]string{"sends": "and 5 more of these"}},
		{"more than are counted", []*deadlock.State{{Messages: messages(1, 1), Left: deadlock.Left{Messages: deadlock.MaxLeft}}, {Rank: 1, Left: deadlock.Left{Messages: 2}}},
			map[string]string{"messages": "and at least 65538 more of these"}},
		{"lines of the report, by messages", []*deadlock.State{{Sends: messages(16, 3)}, {Rank: 1, Sends: messages(16, 3)}, {Rank: 2, Sends: messages(16, 3)}},
			map[string]string{"sends": "and 24 more of these"}},
		{"all", []*deadlock.State{{Messages: messages(2, 1), Receives: messages(1, 1), Sends: messages(1, 1), Left: deadlock.Left{Messages: 1, Receives: 2, Sends: 3}}},
			map[string]string{"messages": "and 1 more of these", "receives": "and 2 more of these", "sends": "and 3 more of these"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := deadlock.Analyze(3, c.states, 0).String()
			for _, kind := range []string{"messages", "receives", "sends"} {
				var lines string
				listed := 0
				for _, s := range c.states {
					for _, m := range map[string][]deadlock.Message{"messages": s.Messages, "receives": s.Receives, "sends": s.Sends}[kind] {
						if listed++; listed <= 40 {
							lines += fmt.Sprintf("    rank %d: %s\n", s.Rank, m.String())
						}
					}
				}
				if more := c.want[kind]; more != "" {
					require.Contains(t, text, title[kind]+":\n"+lines+"    "+more+"\n")
				} else {
					require.NotContains(t, text, title[kind])
				}
			}
		})
	}
}

// TestAnySource checks that the report explains for a receive from any source why no rank sends.
func TestAnySource(t *testing.T) {
	receive := func(source, tag any, millis int64, ranks ...int) deadlock.Call {
		return deadlock.Call{What: fmt.Sprintf("Recv(source %v, tag %v)", source, tag), At: "ring/main.go:9", For: ranks, Any: source == "any", Millis: millis, Unmet: true}
	}
	barrier := deadlock.Call{What: "barrier #3", At: "ring/main.go:12", For: []int{0}, Millis: 5000}
	for _, c := range []struct {
		name   string
		size   int
		states []*deadlock.State
		want   string
	}{
		{"alone", 1, []*deadlock.State{state(0, receive("any", 1, 5000, 0))},
			`Deadlock: rank 0 waits for a message of any rank, and is the only rank that could send it:
    rank 0 waits in Recv(source any, tag 1) at ring/main.go:9 for itself, for 5.0 s
    None of these messages has been sent.
    It ends only if another goroutine of these ranks makes a call.
`},
		{"of itself", 1, []*deadlock.State{state(0, receive(0, 1, 5000, 0))},
			`Deadlock: rank 0 waits for itself:
    rank 0 waits in Recv(source 0, tag 1) at ring/main.go:9 for rank 0, for 5.0 s
    None of these messages has been sent.
    It ends only if another goroutine of these ranks makes a call.
`},
		{"both of any", 2, []*deadlock.State{state(0, receive("any", 1, 5000, 0, 1)), state(1, receive("any", 2, 4000, 0, 1))},
			`Deadlock: ranks 0 and 1 wait for one another:
    rank 0 waits in Recv(source any, tag 1) at ring/main.go:9 for any of ranks 0 and 1, for 5.0 s
    rank 1 waits in Recv(source any, tag 2) at ring/main.go:9 for any of ranks 0 and 1, for 4.0 s
    None of those that rank 0 waits for sends, because all of them wait: rank 0 in this call; rank 1 in Recv(source any, tag 2) at ring/main.go:9.
    None of those that rank 1 waits for sends, because all of them wait: rank 0 in Recv(source any, tag 1) at ring/main.go:9; rank 1 in this call.
    None of these messages has been sent.
    It ends only if another goroutine of these ranks makes a call.
`},
		{"a master whose workers are in a barrier", 4, []*deadlock.State{state(0, receive("any", "any", 5000, 0, 1, 2, 3)), state(1, barrier), state(2, barrier), state(3, barrier)},
			`Deadlock: ranks 0 and 1 wait for one another:
    rank 0 waits in Recv(source any, tag any) at ring/main.go:9 for any of ranks 0 to 3, for 5.0 s
    rank 1 waits in barrier #3 at ring/main.go:12 for rank 0, for 5.0 s
    None of those that rank 0 waits for sends, because all of them wait: rank 0 in this call; ranks 1 to 3 in barrier #3 at ring/main.go:12.
    ranks 2 and 3 cannot continue without them.
    It ends only if another goroutine of these ranks makes a call.
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := deadlock.Analyze(c.size, c.states, 1000).String()
			require.Equal(t, c.want, text[:min(len(c.want), len(text))])
			require.Contains(t, text, c.want+"What the ranks do:\n")
		})
	}
}

// TestSentByAny checks that a message that is in flight, or may be among the omitted ones, is not
// reported as unsent.
func TestSentByAny(t *testing.T) {
	call := deadlock.Call{What: "Recv(source any, tag 1)", For: []int{0, 1}, Any: true, Millis: 5000, Unmet: true}
	const unsent = "None of these messages has been sent"
	sender := state(1, call)
	states := []*deadlock.State{state(0, call), sender}
	require.Contains(t, deadlock.Analyze(2, states, 1000).String(), unsent)
	sender.Left.Sends = 1
	require.NotContains(t, deadlock.Analyze(2, states, 1000).String(), unsent)
	sender.Left.Sends, sender.Sends = 0, []deadlock.Message{{From: deadlock.Any, To: 0, Tag: 1}}
	require.NotContains(t, deadlock.Analyze(2, states, 1000).String(), unsent)
}

// TestMoreCalls checks that a rank with omitted calls is not reported as blocked.
func TestMoreCalls(t *testing.T) {
	s := state(0, deadlock.Call{What: "Recv(source 0, tag 1)", For: []int{0}, Millis: 5000})
	require.Len(t, deadlock.Analyze(1, []*deadlock.State{s}, 1000).Knot, 1)
	s.MoreCalls = 3
	r := deadlock.Analyze(1, []*deadlock.State{s}, 1000)
	require.Empty(t, r.Knot)
	require.Contains(t, r.String(), "rank 0: in 3 more calls, of which nothing is known, for ")
}
