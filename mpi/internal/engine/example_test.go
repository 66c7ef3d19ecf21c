package engine_test

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// A single rank can send to itself.
func Example() {
	e, err := engine.New(0, 1, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	in := &protocol.Request{Envelope: match.Envelope{Source: match.Any, Tag: match.Any}, Buf: make([]byte, 16)}
	out := &protocol.Request{Envelope: match.Envelope{Tag: 5}, Dest: 0, Buf: []byte("hello")}
	_ = e.Receive(in)
	go func() { _ = e.Send(out) }()
	if err := e.Wait(context.Background(), in); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s, tag %d\n", in.Buf[:in.Bytes], in.Received.Tag)
	// Output: hello, tag 5
}
