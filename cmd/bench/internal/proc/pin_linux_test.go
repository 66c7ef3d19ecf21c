package proc

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/cmd/internal/cpus"
)

func init() {
	// cpus returns the CPUs that each thread of the worker may use.
	Register("test", "cpus", func(ctx context.Context, w *Worker) error {
		return Serve(ctx, w, func(context.Context, int) (cpusReply, error) {
			threads, err := os.ReadDir("/proc/self/task")
			if err != nil {
				return cpusReply{}, err
			}
			r := cpusReply{Procs: runtime.GOMAXPROCS(0)}
			var set, all unix.CPUSet
			for _, t := range threads {
				tid, err := strconv.Atoi(t.Name())
				if err != nil {
					return cpusReply{}, err
				}
				if err := unix.SchedGetaffinity(tid, &set); err != nil {
					return cpusReply{}, err
				}
				for i := range set {
					all[i] |= set[i]
				}
			}
			for cpu := range 1024 {
				if all.IsSet(cpu) {
					r.CPUs = append(r.CPUs, cpu)
				}
			}
			return r, nil
		})
	})
}

type cpusReply struct {
	CPUs  []int
	Procs int
}

// Bound workers run like ranks: on CPUs assigned round-robin, with GOMAXPROCS 1.
func TestBind(t *testing.T) {
	order := cpus.CPUOrder()
	sets, err := cpus.Auto.CPUSets(2 * len(order))
	require.NoError(t, err)
	if len(order) < 2 || len(order) > 16 || sets == nil {
		t.Skip("there is no choice of processors, or too much of it")
	}
	specs := slices.Repeat([]Spec{{Name: "test", Role: "cpus"}}, 2*len(order))
	g, err := Start(t.Context(), Options{Bind: cpus.Auto}, specs...)
	require.NoError(t, err)
	defer g.Close()
	got, err := Call[int, cpusReply](t.Context(), g, 0)
	require.NoError(t, err)
	for i, r := range got {
		require.Equal(t, cpusReply{CPUs: []int{order[i%len(order)]}, Procs: 1}, r, "rank %d", i)
	}
}

func TestPin(t *testing.T) {
	order := cpus.CPUOrder()
	require.NotEmpty(t, order)
	role := Spec{Name: "test", Role: "cpus"}
	g, err := Start(t.Context(), Options{Pin: true}, role, role)
	require.NoError(t, err)
	defer g.Close()
	for range 2 {
		got, err := Call[int, cpusReply](t.Context(), g, 0)
		require.NoError(t, err)
		for i, r := range got {
			require.Equal(t, []int{order[i%len(order)]}, r.CPUs, "all threads of rank %d", i)
			require.Equal(t, runtime.GOMAXPROCS(0), r.Procs)
		}
	}
}
