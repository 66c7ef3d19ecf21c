package cmtool_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
)

// node is a connection that does nothing.
type node struct{ name string }

func (n *node) Close() error {
	fmt.Println("close", n.name)
	return nil
}

// A server whose second connection fails.
func Example() {
	o := cmtool.Defaults(7471)
	o.Out, o.Connections = os.Stdout, 3
	nodes := cmtool.Nodes[*node]{{"the first"}, {"the second"}, nil}
	err := o.Run(context.Background(), func(context.Context) error {
		defer nodes.Close()
		return nodes.Each(func(n *node) error {
			if n.name == "the second" {
				return errors.New("it has ended")
			}
			return nil
		})
	}, nil)
	fmt.Println(err)
	// Output:
	// close the first
	// close the second
	// test complete
	// return status 1
	// connection 1: it has ended
}
