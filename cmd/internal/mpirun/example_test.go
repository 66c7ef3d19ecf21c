//go:build unix

package mpirun_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/softrnic/softrnic/cmd/internal/mpirun"
)

// Four ranks, of which the last one fails.
func Example() {
	err := mpirun.Run(context.Background(), mpirun.Options{
		Programs: []mpirun.Program{{N: 4, Args: []string{"sh", "-c", `test $PMI_RANK != 3 || { echo "no more"; exit 2; }; exec sleep 60`}}},
		Agent:    []string{os.Args[0], "agent"}, // softrnic mpirun --agent
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
		Prefix:   true,
	})
	var failed *mpirun.Failure
	fmt.Println(errors.As(err, &failed), failed.Status)
	// Output:
	// [3] no more
	// true 2
}
