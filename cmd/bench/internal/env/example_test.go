package env_test

import (
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/env"
)

func ExampleRead() {
	fmt.Println(env.Read()[0].Name)
	// Output: go
}
