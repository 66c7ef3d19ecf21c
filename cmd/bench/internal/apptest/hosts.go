// Package apptest has helpers for tests of the applications: golden images, and runs on
// hosts that share no memory.
//
//	require.Equal(t, "edfb08e8d0e5a0c2", apptest.Checksum(picture))
//	apptest.CompareGolden(t, "testdata/blobs.png", picture) // -update writes it
//	err := apptest.RunOnHosts(apptest.TimeoutContext(t), []string{"a", "b"}, []datacutter.Job{a.Job(), b.Job()})
package apptest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/softrnic/softrnic/datacutter"
)

// TimeoutContext returns a context that ends after 5 minutes, so that a hanging test fails.
func TimeoutContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// RunOnHosts runs a job on hosts that share no memory, as separate processes would: each host
// is a Node of its own over TCP, with its own copy of the job.
func RunOnHosts(ctx context.Context, hosts []string, jobs []datacutter.Job) error {
	nodes, addrs := make([]*datacutter.Node, len(hosts)), make(map[string]string)
	for i, h := range hosts {
		n, err := datacutter.Listen(ctx, datacutter.NewTCP(""))
		if err != nil {
			return err
		}
		defer n.Close() // for nodes that do not run
		nodes[i], addrs[h] = n, n.Addr()
	}
	var wg sync.WaitGroup
	errs := make([]error, len(hosts))
	for i, h := range hosts {
		wg.Go(func() {
			if _, err := nodes[i].Run(ctx, jobs[i], h, addrs); err != nil {
				errs[i] = fmt.Errorf("%s: %w", h, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
