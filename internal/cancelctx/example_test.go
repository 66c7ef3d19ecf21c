package cancelctx_test

import (
	"context"
	"fmt"
	"os"

	"github.com/softrnic/softrnic/internal/cancelctx"
)

func Example() {
	m := cancelctx.New(os.ErrDeadlineExceeded)
	told := make(chan bool)
	context.AfterFunc(m, func() { close(told) })
	fmt.Println(m.Err())
	m.Cancel()
	<-m.Done()
	<-told
	fmt.Println(m.Err())
	// Output:
	// <nil>
	// i/o timeout
}
