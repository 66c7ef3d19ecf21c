package cmtool

import (
	"errors"
	"fmt"
)

// A Node is one side of a connection, or nil.
type Node interface {
	comparable
	Close() error
}

// Nodes are those of a run, by the number of the connection.
type Nodes[N Node] []N

// Each calls do for all nodes in order until one fails.
func (ns Nodes[N]) Each(do func(N) error) error {
	for i, n := range ns {
		if err := do(n); err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
	}
	return nil
}

// Close closes the nodes that exist.
func (ns Nodes[N]) Close() error {
	var errs []error
	var none N
	for _, n := range ns {
		if n != none {
			errs = append(errs, n.Close())
		}
	}
	return errors.Join(errs...)
}

// Fill writes the data of the first message on connection i.
func Fill(b []byte, i int) {
	for at := range b {
		b[at] = byte(i + at + at>>8)
	}
}
