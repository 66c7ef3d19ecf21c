package closing_test

import (
	"errors"
	"fmt"
	"io"

	"github.com/softrnic/softrnic/cmd/internal/closing"
)

// A file fails to close.
type file struct{ err error }

func (f file) Close() error { return f.err }

func ExampleAll() {
	fmt.Println(closing.All[io.Closer](file{}, nil, file{errors.New("disk full")}))
	// Output: disk full
}
