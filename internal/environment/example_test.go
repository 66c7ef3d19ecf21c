package environment_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/environment"
)

func ExampleUnknown() {
	fmt.Println(environment.Unknown([]string{"SOFTRNIC_IMPIAR=loss 1%", "SOFTRNIC_LOG=off", "PATH=/bin"}))
	// Output: [SOFTRNIC_IMPIAR]
}
