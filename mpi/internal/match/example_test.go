package match_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/match"
)

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
