package flow_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/flow"
)

// The peer has not read for a while. Two messages use the two free windows of its ring; later data
// waits, and is sent as one message.
func Example() {
	const window = 4
	send, ring := make([]byte, 16), make([]byte, 2*window+window)
	s := flow.NewNICSender(send, len(send), len(ring), window, 8)
	r := flow.NewNICReceiver(ring, window, 8)

	receives := r.Receives() // receives of the peer
	fmt.Println("receives:", receives)

	var adapter []flow.Message
	post := func() {
		for m, ok := s.Next(); ok; m, ok = s.Next() {
			adapter = append(adapter, m) // an RDMA WRITE with immediate data
		}
	}
	for _, word := range []string{"ab", "cdef", "g", "h", "i", "j"} {
		s.Write([]byte(word))
		post()
	}
	for receives > 0 && len(adapter) > 0 {
		m := adapter[0]
		adapter = adapter[1:]
		copy(ring[m.Remote:], send[m.Local:][:m.Len])
		_ = r.Deliver(m.Remote, m.Len)
		receives--
		s.CompleteUpTo(m.End())
		post()
		fmt.Printf("%d bytes at %d, %d receives left\n", m.Len, m.Remote, receives)
	}
	for _, m := range adapter {
		fmt.Printf("%q waits in the adapter\n", send[m.Local:][:m.Len])
	}

	buf := make([]byte, 16)
	fmt.Printf("read %q, receives: %d\n", buf[:r.Read(buf)], r.Receives())

	// Output:
	// receives: 2
	// 2 bytes at 0, 1 receives left
	// 4 bytes at 2, 0 receives left
	// "ghij" waits in the adapter
	// read "abcdef", receives: 2
}
