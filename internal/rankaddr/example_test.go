package rankaddr_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/internal/rankaddr"
)

// oneHost is the manager of a job of two ranks on one host.
type oneHost struct{ rankaddr.Manager }

func (oneHost) Rank() int    { return 0 }
func (oneHost) Size() int    { return 2 }
func (oneHost) Node(int) int { return 0 }

// The ranks of one host reach each other by the loopback interface: nothing is chosen.
func Example() {
	fmt.Println(rankaddr.Choose(context.Background(), oneHost{}))
	// Output: <nil>
}
