package mpirun

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/internal/cpus"
)

// TestBinding checks that ranks run on the processors they are bound to, in turn.
func TestBinding(t *testing.T) {
	order := cpus.CPUOrder()
	if len(order) < 2 || cpus.RunOn(order[:1], func() error { return nil }) != nil {
		t.Skip("there is one processor to choose from, or none")
	}
	const most = 64 // ranks that a test starts
	all := places(t, 1, cpus.None)[0]
	for _, c := range []struct {
		bind  cpus.Binding
		ranks int
		bound bool
	}{
		{"", 2 * len(order), true},
		{"", 2*len(order) + 1, false},
		{cpus.Auto, len(order), false},
		{cpus.Thread, min(len(order)+1, most), true},
		{cpus.None, min(2*len(order), most), false},
	} {
		if c.ranks > most {
			continue
		}
		for rank, place := range places(t, c.ranks, c.bind) {
			want := all
			if c.bound {
				want = fmt.Sprint(order[rank%len(order)])
			}
			require.Equal(t, want, place, "rank %d of %d, bound by %q", rank, c.ranks, c.bind)
		}
	}
}

// places are the processors that each rank may run on, as proc(5) lists them.
func places(t *testing.T, ranks int, bind cpus.Binding) (list []string) {
	t.Helper()
	r := runJob(t, Options{
		Programs: []Program{{N: ranks, Args: []string{"sh", "-c", `echo $(printf %04d $PMI_RANK) $(grep Cpus_allowed_list /proc/$$/status)`}}},
		Bind:     bind,
	})
	require.NoError(t, r.err)
	lines := r.lines(t)
	require.Len(t, lines, ranks)
	slices.Sort(lines)
	for _, line := range lines {
		list = append(list, line[strings.LastIndexByte(line, ' ')+1:])
	}
	return list
}
