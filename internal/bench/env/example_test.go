package env_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/bench/env"
)

func ExampleRead() {
	fmt.Println(env.Read()[0].Name)
	// Output: go
}
