package size_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/internal/size"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]int{
		"0": 0, "64": 64, "-1": -1, "4K": 4096, "4KiB": 4096, "3M": 3 << 20, "3MiB": 3 << 20, "1G": 1 << 30, "1GiB": 1 << 30, "-2K": -2048,
	} {
		n, err := size.Parse(s)
		require.NoError(t, err)
		require.Equal(t, want, n, s)
	}
	for _, s := range []string{"", "K", "4k", "4 KiB", "4KB", "1.5M", "0x10", "9999999999999999999", "9999999999G", "-9999999999G"} {
		_, err := size.Parse(s)
		require.ErrorContains(t, err, "is not a number like 64, 4K or 1MiB", s)
	}
}

// A flag that accepts 64KiB as well as 65536.
func Example() {
	n := 4096
	f := flag.NewFlagSet("tool", flag.ContinueOnError)
	f.Var(size.Var(&n), "buffer-size", "bytes of a buffer")
	err := f.Parse([]string{"-buffer-size", "64KiB"})
	fmt.Println(n, err)
	// Output: 65536 <nil>
}
