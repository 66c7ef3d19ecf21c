package mpi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
)

func TestCountList(t *testing.T) {
	for list, n := range map[string]int{"0": 1, "0-3": 4, "0-3,8\n": 5, "2,4-5,7": 4, "": 0, "\n": 0, "3-1": 0, "-1": 0, "x": 0, "1,x": 0} {
		require.Equal(t, n, mpi.CountList(list), "%q", list)
	}
	for limit, n := range map[string]int{"max 100000\n": 0, "200000 100000\n": 2, "150000 100000": 2, "1 100000": 1, "": 0, "5": 0, "-1 5": 0, "5 0": 0} {
		require.Equal(t, n, mpi.CountQuota(limit), "%q", limit)
	}
	require.Positive(t, mpi.MachineProcessors())
}

// nodes is the process manager of ranks on two nodes, one of which has published its processors.
type nodes struct {
	pmi.Manager
	told string // of node 1; node 0 has 2
}

func (n nodes) Node(rank int) int {
	if rank == 6 {
		return 1 << 30 // the rank's own node, which need not be published
	}
	return rank % 2
}

func (n nodes) Put(key, value string) error {
	_, options, _ := strings.Cut(value, " ")
	switch key {
	case "processors/0":
		value = "2 " + options
	case "processors/1":
		value = n.told + " " + options
	}
	return n.Manager.Put(key, value)
}

// TestProcessors checks that each communicator counts the processors of its ranks, and that all
// ranks agree.
func TestProcessors(t *testing.T) {
	run := func(told string) error {
		return pmi.RunLocal(7, grace, func(m pmi.Manager) error {
			return rank(open, mpi.Options{Manager: nodes{m, told}, Net: mpi.TCP}, func(w mpi.World) error {
				half, err := w.Split(w.Rank()%2, 0)
				if err != nil {
					return err
				}
				one, err := half.Split(half.Rank(), 0)
				if err != nil {
					return err
				}
				got := [3]int{mpi.ProcessorsOf(w.Comm), mpi.ProcessorsOf(half), mpi.ProcessorsOf(one)}
				if want := [3]int{6, []int{3, 3}[w.Rank()%2], 1}; got != want { // 3 ranks on 2, 3 on 8, 1
					return fmt.Errorf("%v processors, not %v", got, want)
				}
				return nil
			})
		})
	}
	require.NoError(t, run("8"))
	for _, told := range []string{"0", "many", "-3"} {
		require.ErrorContains(t, run(told), `processors of node 1: "`+told+`" is not a number`)
	}
}

// TestProcessorsUnknown checks that Init fails without the processors of a node.
func TestProcessorsUnknown(t *testing.T) {
	err := pmi.RunLocal(2, grace, func(m pmi.Manager) error {
		return rank(open, mpi.Options{Manager: silent{m}, Net: mpi.TCP}, func(mpi.World) error { return nil })
	})
	require.ErrorIs(t, err, pmi.ErrNotFound)
}

type silent struct{ pmi.Manager }

func (s silent) Get(ctx context.Context, key string) (string, error) {
	if key == "processors/0" {
		return "", pmi.ErrNotFound
	}
	return s.Manager.Get(ctx, key)
}

// TestOptionsDiffer checks that Init fails if ranks of one node have options with which calls would
// differ.
func TestOptionsDiffer(t *testing.T) {
	t.Setenv("SOFTRNIC_MPI_SHARED", "on")
	for want, o := range map[string]mpi.Options{
		"NoShared true, Check false at this rank, NoShared false, Check false at the first rank": {NoShared: true},
		"NoShared false, Check true at this rank, NoShared false, Check false at the first rank": checked,
	} {
		err := pmi.RunLocal(3, grace, func(m pmi.Manager) error {
			mine := mpi.Options{}
			if m.Rank() == 2 {
				mine = o
			}
			mine.Manager = m
			w, err := mpi.Init(open, mine)
			if m.Rank() == 2 {
				return err
			}
			require.NoError(t, err)
			w.Vanish()
			return nil
		})
		require.ErrorContains(t, err, want)
	}
}
