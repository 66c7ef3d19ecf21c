package racesync_test

import (
	"fmt"
	"io"
	"os"

	"github.com/softrnic/softrnic/internal/racesync"
)

// A pipe stands for what leaves and arrives. It tells the race detector itself, which
// a system call of our own, or memory that processes have in common, does not.
func Example() {
	in, out, err := os.Pipe()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer in.Close()
	news := ""
	go func() {
		defer out.Close()
		news = "written before"
		racesync.Release()
		_, _ = out.Write([]byte{1})
	}()
	if _, err := io.ReadFull(in, make([]byte, 1)); err != nil {
		fmt.Println(err)
		return
	}
	racesync.Acquire()
	fmt.Println(news)
	// Output: written before
}
