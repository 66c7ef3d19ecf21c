package experiments

import (
	"context"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/verbsbench"
)

// An mpiRun is a running experiment with messages between two ranks: MPI, the operations it is
// built on, and Open MPI.
type mpiRun struct {
	*bench.Run
	evaluation
	all     jobs
	sockets *sdpbench.Pair // TCP
	pair    *verbsbench.Pair
	other   openMPI
}

// openMPIRun opens all targets. It plans one step for that and one for each size. The caller
// must close the result, also after an error.
func openMPIRun(ctx context.Context, r *bench.Run) (m *mpiRun, err error) {
	r.Plan(1 + len(r.Ints("sizes")))
	r.Step("opening connections")
	m = &mpiRun{Run: r}
	if m.all, err = openJobs(ctx, r, 2); err != nil {
		return m, err
	}
	if m.sockets, err = sdpbench.Open(ctx, sdpbench.Config{Transport: sdpbench.TCP}); err != nil {
		return m, err
	}
	if m.pair, err = verbsbench.OpenPair(ctx, verbsbench.Config{}); err != nil {
		return m, err
	}
	m.other, err = openOpenMPI(ctx, r)
	return m, err
}

func (m *mpiRun) close() {
	m.other.close()
	if m.pair != nil {
		m.pair.Close()
	}
	if m.sockets != nil {
		m.sockets.Close()
	}
	m.all.close()
}
