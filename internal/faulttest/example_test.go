package faulttest_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/internal/faulttest"
)

// A wait for the end of a context ends with the panic of the context.
func Example() {
	ctx := faulttest.Context{Context: context.Background()}
	err := faulttest.Recover(func() error {
		<-ctx.Done()
		return nil
	})
	fmt.Println(err, err == faulttest.ErrPanic)
	// Output: boom true
}
