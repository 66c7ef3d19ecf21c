package rankproc_test

import (
	"fmt"

	"github.com/softrnic/softrnic/cmd/internal/rankproc"
)

func ExampleRemovePMI() {
	fmt.Println(rankproc.RemovePMI([]string{"HOME=/home/ann", "PMI_RANK=1", "PMI_FD=4"}))
	// Output: [HOME=/home/ann]
}
