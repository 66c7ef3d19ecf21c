package detector_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/softrnic/softrnic/mpi/internal/deadlock"
	"github.com/softrnic/softrnic/mpi/internal/detector"
	"github.com/softrnic/softrnic/mpi/internal/engine"
)

// receive is the condition of a receive whose message is never sent.
type receive struct{ source int }

func (r receive) Ready() bool { return false }

func (r receive) DescribeWait() deadlock.Call {
	return deadlock.Call{What: fmt.Sprintf("Recv(source %d, tag 5)", r.source), For: []int{r.source}, Unmet: true}
}

// A rank alone waits for a message of itself.
func Example() {
	eng, err := engine.New(0, 1, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	reports := make(chan string, 1)
	d := detector.New(detector.Config{Engine: eng, Watchdog: time.Second, Report: func(text string) { reports <- text }})
	d.AttachCalls(&calls{})
	d.Start()
	defer d.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = eng.Wait(ctx, receive{0}) }()
	_, text, _ := strings.Cut(<-reports, "\n") // without the title, which has the time
	text, _, _ = strings.Cut(text, "for rank 0")
	fmt.Println(text)
	// Output:
	// Deadlock: rank 0 waits for itself:
	//     rank 0 waits in Recv(source 0, tag 5)
}
