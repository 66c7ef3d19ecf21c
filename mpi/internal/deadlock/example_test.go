package deadlock_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
)

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
