package sockets_test

import (
	"context"
	"fmt"
	"io"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/sdp"
)

// A message from one end to the other.
func Example() {
	ctx := context.Background()
	s := sockets.New(toolstest.Anywhere, sdp.Options{})
	at, err := sockets.ParseAddr("sdp:127.94.2.1:7471")
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := s.Listen(ctx, at)
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		if c, err := l.Accept(); err == nil {
			io.WriteString(c, "a word")
			c.Close()
		}
	}()
	c, err := s.Dial(ctx, at)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := io.ReadAll(c)
	fmt.Println(string(text), err)
	c.Close()
	fmt.Println(s.Close(ctx))
	// Output:
	// a word <nil>
	// <nil>
}
