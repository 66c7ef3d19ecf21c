package verbstest_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/verbstest"
)

// The table of exceptions has the differences between adapters and the contract.
func Example() {
	for _, e := range verbstest.Exceptions {
		if e.Kind == "rxe" && e.Test == "GSI" {
			fmt.Printf("%s of %s fails with %q: %s\n", e.Test, e.Kind, e.Fails, e.Reason)
		}
	}
	// Output:
	// GSI of rxe fails with "belongs to the kernel": queue pair 1 of a kernel device belongs to the kernel
}
