package nas_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/nas"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas/cg"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas/ep"
	"github.com/softrnic/softrnic/cmd/bench/internal/nas/is"
	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/mpitest"
)

// envAll makes TestVerified run all combinations.
const envAll = "SOFTRNIC_NAS_ALL"

// TestVerified: every kernel, in every class that fits a laptop and on every number
// of ranks, comes to what is published.
//
// With -short only class S is run. A class that takes seconds is run on four ranks, class W on at most
// four, and all combinations with SOFTRNIC_NAS_ALL=1.
func TestVerified(t *testing.T) {
	for _, k := range []struct {
		name    string
		run     func(*mpi.Comm, nas.Class) (nas.Report, error)
		checks  int
		seconds nas.Class // class that takes seconds on each number of ranks
		minutes nas.Class // class that takes about a minute on all of them
	}{
		{name: "is", run: is.Run, checks: 2, seconds: nas.A},
		{name: "cg", run: cg.Run, checks: 1, seconds: nas.A},
		{name: "ep", run: ep.Run, checks: 2, seconds: nas.W, minutes: nas.A},
	} {
		for _, class := range []nas.Class{nas.S, nas.W, nas.A} {
			for _, ranks := range []int{1, 2, 4, 8, 16} {
				t.Run(fmt.Sprintf("%s/%v/%d", k.name, class, ranks), func(t *testing.T) {
					switch {
					case racesync.Enabled && (class != nas.S || ranks != 4 || k.name == "ep"):
						t.Skip("takes long with the race detector")
					case testing.Short() && class != nas.S:
						t.Skip("takes seconds")
					case (class == k.minutes || class == k.seconds && ranks != 4 || class == nas.W && ranks > 4) && os.Getenv(envAll) == "":
						t.Skip("takes minutes with all the others: set " + envAll + "=1")
					}
					require.NoError(t, mpitest.Run(ranks, func(w mpi.World) error {
						r, err := k.run(w.Comm, class)
						if err != nil {
							return err
						}
						if !r.Verified() || len(r.Checks) != k.checks || r.Class != class || r.Processes != ranks || r.Time <= 0 {
							return fmt.Errorf("%v", r)
						}
						return nil
					}))
				})
			}
		}
	}
}

func TestBadArguments(t *testing.T) {
	require.NoError(t, mpitest.Run(3, func(w mpi.World) error {
		for name, run := range map[string]func(*mpi.Comm, nas.Class) (nas.Report, error){"is": is.Run, "cg": cg.Run, "ep": ep.Run} {
			_, err := run(w.Self, 'X')
			require.ErrorIs(t, err, nas.ErrClass, name)
			if name != "ep" {
				_, err = run(w.Comm, nas.S)
				require.ErrorIs(t, err, nas.ErrRanks, name)
			}
		}
		return nil
	}))
}
