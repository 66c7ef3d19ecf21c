package racesync_test

import (
	"fmt"
	"io"
	"os"

	"github.com/softrnic/softrnic/internal/racesync"
)

// The pipe stands for a queue of packets. A pipe of package os informs the race detector itself;
// system calls of this module and memory shared between processes do not.
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
