package progress_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/softrnic/softrnic/internal/progress"
)

// A mailbox is a Source that receives messages from a channel, and a Waitable that is
// ready when it has one.
type mailbox struct {
	mu      sync.Mutex
	ch      chan string
	blocked []string // received by Block, for Poll
	inbox   []string
}

func (*mailbox) Prepare(progress.Waitable) {}

func (m *mailbox) Poll() bool {
	some := len(m.blocked) > 0
	m.inbox, m.blocked = append(m.inbox, m.blocked...), nil
	return some
}

func (m *mailbox) Block(ctx context.Context) error {
	select {
	case s := <-m.ch:
		m.blocked = append(m.blocked, s)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *mailbox) Ready() bool { return len(m.inbox) > 0 }

func Example() {
	m := &mailbox{ch: make(chan string, 1)}
	e := progress.New(&m.mu, m)
	m.ch <- "hello"

	m.mu.Lock()
	defer m.mu.Unlock()
	err := e.Wait(context.Background(), m)
	fmt.Println(m.inbox, err)
	// Output: [hello] <nil>
}
