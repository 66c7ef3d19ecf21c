package sharedfile_test

import (
	"fmt"
	"os"

	"github.com/softrnic/softrnic/cmd/bench/internal/sharedfile"
)

func Example() {
	path, err := sharedfile.Create(4096)
	if err != nil {
		panic(err)
	}
	defer os.Remove(path)
	here, err := sharedfile.Map(path, 4096)
	if err != nil {
		panic(err)
	}
	there, err := sharedfile.Map(path, 4096) // in another process
	if err != nil {
		panic(err)
	}
	defer sharedfile.Unmap(here)
	defer sharedfile.Unmap(there)
	here[1] = 7
	fmt.Println(len(there), there[1])
	// Output: 4096 7
}
