package reuse_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/reuse"
)

// A buffer that is not in use any more may serve the next user, which must not rely on its contents.
func Example() {
	var pool reuse.Pool[[]byte]
	b := pool.Get()
	*b = append((*b)[:0], "a packet"...)
	fmt.Println(string(*b))
	pool.Put(b)

	c := pool.Get() // perhaps b
	*c = append((*c)[:0], "the next"...)
	fmt.Println(string(*c))
	// Output:
	// a packet
	// the next
}
