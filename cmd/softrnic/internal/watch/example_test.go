package watch_test

import (
	"context"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
)

func Example() {
	ctx, w := watch.Start(context.Background(), 10*time.Millisecond)
	defer w.Stop()
	w.Beat()
	<-ctx.Done() // without a beat
	fmt.Println(context.Cause(ctx))
	// Output: no progress
}
