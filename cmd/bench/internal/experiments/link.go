package experiments

import (
	"context"
	"os"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/rnic"
)

// linkParam is the way of packets between processes, of which the papers' is a network: rings in shared
// memory beside an opponent on the loopback interface would compare two links rather than two protocols.
var linkParam = bench.Param{
	Name: "link", Kind: bench.Words, Default: "sockets", Choices: []string{"sockets", "shm"}, OfClaim: true,
	Doc: "packets between processes pass through sockets, or through rings in shared memory",
}

// register registers an experiment with the parameter link. Experiments about links or idle adapters, and
// those without an adapter, call bench.Register.
func register(e *bench.Experiment) { bench.Register(withLink(e)) }

func withLink(e *bench.Experiment) *bench.Experiment {
	e.Params = append(e.Params, linkParam)
	do := e.Run
	e.Run = func(ctx context.Context, r *bench.Run) error {
		if r.Words(linkParam.Name)[0] == linkParam.Default {
			defer withoutSharedMemory()()
		}
		return do(ctx, r)
	}
	return e
}

// withoutSharedMemory makes adapters that are opened from now on, also in other processes, use
// sockets between processes of one host, until restore is called.
func withoutSharedMemory() (restore func()) {
	words, set := os.LookupEnv(rnic.EnvLink)
	value := "noshm"
	if words != "" {
		value = words + ",noshm"
	}
	os.Setenv(rnic.EnvLink, value)
	return func() {
		if set {
			os.Setenv(rnic.EnvLink, words)
		} else {
			os.Unsetenv(rnic.EnvLink)
		}
	}
}
