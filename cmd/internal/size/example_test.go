package size_test

import (
	"flag"
	"fmt"

	"github.com/softrnic/softrnic/cmd/internal/size"
)

// A flag that accepts 64KiB as well as 65536.
func Example() {
	n := 4096
	f := flag.NewFlagSet("tool", flag.ContinueOnError)
	f.Var(size.Var(&n), "buffer-size", "bytes of a buffer")
	err := f.Parse([]string{"-buffer-size", "64KiB"})
	fmt.Println(n, err)
	// Output: 65536 <nil>
}
