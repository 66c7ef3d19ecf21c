package wiretest_test

import (
	"flag"
	"fmt"

	"github.com/softrnic/softrnic/internal/wiretest"
)

// With RoCE no test is skipped.
func ExampleSkipExceptions() {
	wiretest.SkipExceptions("rnic")
	fmt.Println(flag.Lookup("test.skip").Value.String() == "")
	// Output: true
}
