package envelope_test

import (
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

func Example() {
	h := envelope.Header{Kind: envelope.Eager, Context: 4, Tag: 7, Length: 5, Bytes: 5, Source: 1}
	packet := make([]byte, envelope.Size+5)
	h.MarshalTo(packet)
	copy(packet[envelope.Size:], "hello")

	var got envelope.Header
	if err := got.Unmarshal(packet); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%v of rank %d, tag %d: %s\n", got.Kind, got.Source, got.Tag, packet[envelope.Size:][:got.Bytes])

	packet[28] = 6 // Bytes
	fmt.Println(got.Unmarshal(packet))
	// Output:
	// EAGER of rank 1, tag 7: hello
	// mpi: malformed packet: EAGER with length 5 and a payload of 6 bytes
}
