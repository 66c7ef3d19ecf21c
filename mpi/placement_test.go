package mpi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// nodes is the process manager of ranks on three nodes, two of which have several ranks: node 0
// with 2 processors, and node 1 with 8.
type nodes struct{ pmi.Manager }

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
		value = "8 " + options
	}
	return n.Manager.Put(key, value)
}

// TestProcessors checks that each communicator counts the processors of its ranks, and that all
// ranks agree.
func TestProcessors(t *testing.T) {
	require.NoError(t, pmi.RunLocal(7, grace, func(m pmi.Manager) error {
		return rank(open, mpi.Options{Manager: nodes{m}, Net: mpi.TCP}, func(w mpi.World) error {
			half, err := w.Split(w.Rank()%2, 0)
			if err != nil {
				return err
			}
			one, err := half.Split(half.Rank(), 0)
			if err != nil {
				return err
			}
			got := [3]int{mpi.ProcessorsOf(w.Comm), mpi.ProcessorsOf(half), mpi.ProcessorsOf(one)}
			if want := [3]int{6, 3, 1}; got != want { // 3 ranks on 2, 3 on 8, 1
				return fmt.Errorf("%v processors, not %v", got, want)
			}
			return nil
		})
	}))
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
