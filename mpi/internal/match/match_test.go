package match_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi/internal/match"
)

type node = match.Node[int]

// matches is the matching rule, as a slow model.
func matches(receive, message match.Envelope) bool {
	return receive.Context == message.Context &&
		(receive.Source == match.Any || receive.Source == message.Source) &&
		(receive.Tag == match.Any || receive.Tag == message.Tag)
}

// TestQueueAgainstList compares a queue with a list, of which the first matching element is
// removed.
func TestQueueAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		many := rapid.Bool().Draw(t, "many") // so that there are more bins
		draw := func(wild bool) match.Envelope {
			least, most := 0, int32(2)
			if wild {
				least = match.Any
			}
			if many {
				most = 40
			}
			return match.Envelope{Context: rapid.Uint32Range(0, 1).Draw(t, "context"),
				Source: rapid.Int32Range(int32(least), most).Draw(t, "source"), Tag: rapid.Int32Range(int32(least), most).Draw(t, "tag")}
		}
		receives, messages := &match.Queue[int]{}, &match.Queue[int]{}
		var receiveList, messageList []*node
		next := 0
		push := func(q *match.Queue[int], list *[]*node, wild bool) {
			n := 1
			if many {
				n = rapid.IntRange(1, 200).Draw(t, "burst")
			}
			for range n {
				next++
				v := &node{Item: next, Envelope: draw(wild)}
				q.Push(v)
				if !v.Queued() {
					t.Fatal("not queued")
				}
				*list = append(*list, v)
			}
		}
		remove := func(q *match.Queue[int], list *[]*node, n *node) {
			q.Remove(n)
			if n.Queued() {
				t.Fatal("queued still")
			}
			q.Remove(n) // which does not change the result
			*list = slices.DeleteFunc(*list, func(o *node) bool { return o == n })
		}
		first := func(list []*node, f func(*node) bool) *node {
			if i := slices.IndexFunc(list, f); i >= 0 {
				return list[i]
			}
			return nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"receive": func(t *rapid.T) { push(receives, &receiveList, true) },
			"message": func(t *rapid.T) { push(messages, &messageList, false) },
			"message comes": func(t *rapid.T) {
				e := draw(false)
				want := first(receiveList, func(n *node) bool { return matches(n.Envelope, e) })
				if got := receives.FindReceive(e); got != want {
					t.Fatalf("%+v goes to %+v, want %+v", e, got, want)
				}
				if want != nil {
					remove(receives, &receiveList, want)
				}
			},
			"receive comes": func(t *rapid.T) {
				e := draw(true)
				want := first(messageList, func(n *node) bool { return matches(e, n.Envelope) })
				if got := messages.FindMessage(e); got != want {
					t.Fatalf("%+v takes %+v, want %+v", e, got, want)
				}
				if want != nil && rapid.Bool().Draw(t, "take") {
					remove(messages, &messageList, want)
				}
			},
			"cancel": func(t *rapid.T) {
				if len(receiveList) > 0 {
					remove(receives, &receiveList, receiveList[rapid.IntRange(0, len(receiveList)-1).Draw(t, "which")])
				}
			},
			"each": func(t *rapid.T) {
				i, stop := 0, rapid.IntRange(0, len(messageList)).Draw(t, "stop")
				list := slices.Clone(messageList)
				messages.Each(func(n *node) bool {
					if n != list[i] {
						t.Fatalf("%d is %+v, want %+v", i, n, list[i])
					}
					if n.Item%3 == 0 {
						remove(messages, &messageList, n)
					}
					i++
					return i < stop
				})
				if i != max(min(1, len(list)), stop) {
					t.Fatalf("%d of %d", i, stop)
				}
			},
			"": func(t *rapid.T) {
				if receives.Len() != len(receiveList) || messages.Len() != len(messageList) {
					t.Fatalf("%d receives, want %d; %d messages, want %d", receives.Len(), len(receiveList), messages.Len(), len(messageList))
				}
			},
		})
	})
}

func TestMatches(t *testing.T) {
	m := match.Envelope{Context: 1, Source: 2, Tag: 3}
	for _, e := range []match.Envelope{m, {1, match.Any, 3}, {1, 2, match.Any}, {1, match.Any, match.Any}} {
		require.True(t, e.Matches(m), "%+v", e)
	}
	for _, e := range []match.Envelope{{0, 2, 3}, {1, 0, 3}, {1, 2, 0}, {0, match.Any, match.Any}, {1, match.Any, 4}} {
		require.False(t, e.Matches(m), "%+v", e)
	}
}

// TestNoAllocation checks that posted receives allocate nothing once there are enough bins.
func TestNoAllocation(t *testing.T) {
	var q match.Queue[int]
	nodes := make([]node, 100)
	round := func() {
		for i := range nodes {
			nodes[i].Envelope = match.Envelope{Source: int32(i % 7), Tag: int32(i)}
			q.Push(&nodes[i])
		}
		for i := range nodes {
			n := q.FindReceive(match.Envelope{Source: int32(i % 7), Tag: int32(i)})
			q.Remove(n)
		}
	}
	round()
	require.Zero(t, testing.AllocsPerRun(100, round))
}

func BenchmarkReceive(b *testing.B) {
	for _, c := range []struct {
		name    string
		waiting int
	}{{"empty", 0}, {"1000", 1000}, {"100000", 100_000}} {
		b.Run(c.name, func(b *testing.B) {
			var q match.Queue[int]
			for i := range c.waiting {
				q.Push(&node{Envelope: match.Envelope{Source: int32(i % 64), Tag: int32(i)}})
			}
			n := &node{Envelope: match.Envelope{Source: 3, Tag: 1 << 30}}
			for b.Loop() {
				q.Push(n)
				q.Remove(q.FindReceive(n.Envelope))
			}
		})
	}
}

func ExampleQueue() {
	var receives match.Queue[string]
	for _, r := range []struct {
		name string
		e    match.Envelope
	}{
		{"from 1, tag 5", match.Envelope{Source: 1, Tag: 5}},
		{"from anywhere", match.Envelope{Source: match.Any, Tag: match.Any}},
		{"from 2, tag 5", match.Envelope{Source: 2, Tag: 5}},
	} {
		receives.Push(&match.Node[string]{Item: r.name, Envelope: r.e})
	}
	for range 3 {
		message := match.Envelope{Source: 2, Tag: 5}
		n := receives.FindReceive(message)
		if n == nil {
			fmt.Println("nobody waits for it")
			continue
		}
		fmt.Println(n.Item)
		receives.Remove(n)
	}
	// Output:
	// from anywhere
	// from 2, tag 5
	// nobody waits for it
}
