package apptest_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/bench/internal/apptest"
	"github.com/softrnic/softrnic/datacutter"
)

// Two hosts, each with its own copy of the job.
func ExampleRunOnHosts() {
	job := greeting(func(word string) error {
		fmt.Println(word)
		return nil
	})
	fmt.Println(apptest.RunOnHosts(context.Background(), []string{"x", "y"}, []datacutter.Job{job, job}))
	// Output:
	// hello
	// <nil>
}
