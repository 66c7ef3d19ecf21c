package childtest_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/childtest"
)

// A TestMain begins like this. In the parent Serve returns at once.
func ExampleServe() {
	childtest.Serve(func(order, reply *int) error {
		*reply = 2 * *order
		return nil
	})
	fmt.Println("run the tests")
	// Output: run the tests
}
