package perftest

import (
	"context"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
)

// warmUp sends as many messages as the queues hold on each queue pair before the test.
func (r *runner) warmUp(ctx context.Context, alive *watch.Watch, size int) error {
	o, p, e := *r.Options, *r.plan, *r.endpoint
	o.Iters = max(r.txDepth, r.PostList) / r.PostList * r.PostList
	p.Options, p.noPeak, p.timed, e.plan = &o, true, false, &p
	t, err := e.newBandwidthRun(size)
	if err != nil {
		return err
	}
	return t.run(ctx, alive)
}
