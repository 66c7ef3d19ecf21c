package rdm_test

import (
	"context"
	"fmt"
	"log"

	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func open() *rdm.Endpoint {
	dev, err := rnic.Open(rnic.Options{})
	check(err)
	e, err := rdm.Open(dev, rdm.Options{})
	check(err)
	return e
}

// Two endpoints, a message, and an operation of one on memory of the other.
func Example() {
	ctx := context.Background()
	a, b := open(), open()
	shared, err := b.Register([]byte("the memory of b."), verbs.AccessLocalWrite|verbs.AccessRemote)
	check(err)
	there := shared.Remote(0) // sent to a by any means

	p, err := a.Dial(ctx, b.Addr())
	check(err)
	mine, err := a.Register(make([]byte, 16), verbs.AccessLocalWrite)
	check(err)
	var op rdm.Op
	check(p.Read(&op, mine.At(0, 16), there))
	check(op.Wait(ctx))
	fmt.Printf("%s\n", mine.Bytes())
	copy(mine.Bytes(), "a")
	check(p.Write(&op, mine.At(0, 1), there.Add(14)))
	check(op.Wait(ctx))

	check(p.Send(ctx, []byte("look")))
	buf := make([]byte, b.MaxMessage())
	n, _, err := b.Recv(ctx, buf)
	check(err)
	fmt.Printf("%s: %s\n", buf[:n], shared.Bytes())
	check(a.Close())
	check(b.Close())
	// Output:
	// the memory of b.
	// look: the memory of a.
}
