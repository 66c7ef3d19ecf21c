package placement_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/placement"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// nodes is the process manager of ranks on two nodes. If count is not empty, it stands for the
// number of processors that the ranks publish.
type nodes struct {
	pmi.Manager
	count string
}

func (n nodes) Node(rank int) int { return rank % 2 }

func (n nodes) Put(key, value string) error {
	if _, options, _ := strings.Cut(value, " "); strings.HasPrefix(key, "processors/") && n.count != "" {
		value = n.count + " " + options
	}
	return n.Manager.Put(key, value)
}

// exchange has the ranks of a job exchange their placement and returns the result of each.
func exchange(t *testing.T, n int, count string, options func(rank int) string) (ranks []*placement.Placement, errs []error) {
	ranks, errs = make([]*placement.Placement, n), make([]error, n)
	var all sync.WaitGroup
	for i, m := range pmi.NewLocal(n) {
		ranks[i] = placement.New(nodes{m, count})
		all.Go(func() { errs[i] = ranks[i].Exchange(t.Context(), options(i)) })
	}
	all.Wait()
	return ranks, errs
}

func same(int) string { return "A true, B 2" }

// TestExchange checks that all ranks count the same processors of a communicator.
func TestExchange(t *testing.T) {
	ranks, errs := exchange(t, 7, "2", same)
	require.NoError(t, errors.Join(errs...))
	all := func(r int) int { return r }
	odd := func(r int) int { return 2*r + 1 }
	for _, p := range ranks {
		require.Equal(t, 4, p.CountProcessors(7, all), "2 of each node")
		require.Equal(t, 2, p.CountProcessors(3, odd))
		require.Equal(t, 1, p.CountProcessors(1, odd))
		require.False(t, p.OnOneNode(7, all))
		require.True(t, p.OnOneNode(3, odd))
	}
}

// TestMalformedProcessors checks that a count that is not a positive number is an error.
func TestMalformedProcessors(t *testing.T) {
	for _, count := range []string{"0", "many", "-3"} {
		_, errs := exchange(t, 4, count, same)
		for _, err := range errs {
			require.ErrorContains(t, err, `: "`+count+`" is not a number`)
		}
	}
}

// TestOptionsWithinNode checks that the options must be equal within each node only.
func TestOptionsWithinNode(t *testing.T) {
	_, errs := exchange(t, 4, "", func(rank int) string { return fmt.Sprint("node ", rank%2) })
	require.NoError(t, errors.Join(errs...))
	_, errs = exchange(t, 4, "", func(rank int) string { return fmt.Sprint("option ", rank/3) })
	require.NoError(t, errors.Join(errs[:3]...))
	require.EqualError(t, errs[3], "options differ within the node: option 1 at this rank, option 0 at the first rank")
}

// TestFailedRank checks that a rank that does not start delays no other, and that the others
// read the reason.
func TestFailedRank(t *testing.T) {
	managers := pmi.NewLocal(3)
	placement.New(managers[0]).JoinAsFailed(errors.New("no adapter"), time.Minute)
	errs := make(chan error)
	for _, m := range managers[1:] {
		go func() { errs <- placement.New(m).Exchange(t.Context(), "") }()
	}
	for range managers[1:] {
		err := <-errs
		require.ErrorIs(t, err, pmi.ErrNotFound)
		require.ErrorContains(t, err, "processors of node 0, which rank 0 (")
		require.ErrorContains(t, err, fmt.Sprintf(", pid %d, not started: no adapter) publishes: ", os.Getpid()))
	}
}

// counting is a process manager that counts the calls of Get.
type counting struct {
	pmi.Manager
	gets int
}

func (c *counting) Get(ctx context.Context, key string) (string, error) {
	c.gets++
	return c.Manager.Get(ctx, key)
}

// TestDescribeRank checks that a rank is looked up once, also if the process manager does not know
// it.
func TestDescribeRank(t *testing.T) {
	c := &counting{Manager: pmi.NewLocal(1)[0]}
	p := placement.New(c)
	require.NoError(t, p.Exchange(t.Context(), ""))
	for range 2 {
		require.Contains(t, p.DescribeRank(0), fmt.Sprintf(", pid %d", os.Getpid()))
		require.Empty(t, p.DescribeRank(1))
	}
	require.Equal(t, 2, c.gets)
}

// Two ranks on one node of any number of processors.
func Example() {
	var ranks [2]*placement.Placement
	var all sync.WaitGroup
	for i, m := range pmi.NewLocal(2) {
		ranks[i] = placement.New(m)
		all.Go(func() {
			if err := ranks[i].Exchange(context.Background(), "Check false"); err != nil {
				fmt.Println(err)
			}
		})
	}
	all.Wait()
	worldRank := func(rank int) int { return rank }
	fmt.Println(ranks[0].OnOneNode(2, worldRank), ranks[0].CountProcessors(1, worldRank))
	fmt.Println(ranks[0].DescribeRank(1) == ranks[1].DescribeRank(1))
	// Output:
	// true 1
	// true
}
