package frame_test

import (
	"bytes"
	"fmt"

	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
)

func Example() {
	var wire bytes.Buffer
	w := frame.NewWriter(&wire)
	fmt.Println(w.Write(frame.Stdout, 3, []byte("hello")))
	kind, rank, b, err := frame.NewReader(&wire).Next()
	fmt.Println(kind == frame.Stdout, rank, string(b), err)
	// Output:
	// <nil>
	// true 3 hello <nil>
}
