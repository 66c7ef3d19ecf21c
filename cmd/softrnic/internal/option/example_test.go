package option_test

import (
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
)

func ExampleErrorf() {
	err := option.Errorf("-n", "%d iterations: want at least 1", 0)
	var e *option.Error
	fmt.Println(errors.As(err, &e), e.Option)
	// Output: true -n
}
