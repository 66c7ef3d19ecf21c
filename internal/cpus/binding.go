package cpus

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Binding is how processes of one machine are bound to its processors.
type Binding string

const (
	// Auto binds each to a processor where there are more of them than processors, and
	// as many for each. Where they do not come out even, or each may have a
	// processor to itself, the kernel does better, or as well.
	Auto Binding = "auto"
	// None binds nobody.
	None Binding = "none"
	// Core binds each to the processors of one core.
	Core Binding = "core"
	// Thread binds each to one processor: a hardware thread.
	Thread Binding = "hwthread"
)

// ErrUnsupported says that the processors of this system are not known.
var ErrUnsupported = errors.New("processes cannot be bound to processors on this system")

// ParseBinding takes a binding's name. Behind it there may be what Open MPI has to say
// about more processes than processors, which are allowed anyway.
func ParseBinding(name string) (Binding, error) {
	plain, _ := strings.CutSuffix(name, ":overload-allowed")
	switch b := Binding(plain); b {
	case Auto, None, Core, Thread:
		return b, nil
	}
	return "", fmt.Errorf("no binding %q: want auto, none, core or hwthread", name)
}

// CPUSets returns the sets of processors that n processes get in turn, nil if they are
// bound to none. Auto does without where this process may not choose; with the others
// that is an error of On.
func (b Binding) CPUSets(n int) ([][]int, error) {
	sets, err := b.setsFor(n, Cores())
	if b == Auto && RunOn(SetOf(sets, 0), func() error { return nil }) != nil {
		return nil, nil
	}
	return sets, err
}

// setsFor is Places on a machine of some cores.
func (b Binding) setsFor(n int, cores [][]int) ([][]int, error) {
	if b == None {
		return nil, nil
	}
	order := spreadOverCores(cores)
	switch {
	case b == Auto && (n <= len(order) || len(order) == 0 || n%len(order) != 0):
		return nil, nil
	case len(order) == 0:
		return nil, ErrUnsupported
	case b == Core:
		return cores, nil
	}
	var sets [][]int
	for _, cpu := range order {
		sets = append(sets, []int{cpu})
	}
	return sets, nil
}

// SetOf is the set of process i, nil if it has none.
func SetOf(sets [][]int, i int) []int {
	if len(sets) == 0 {
		return nil
	}
	return sets[i%len(sets)]
}

// CPUOrder lists the processors that this process may run on, one of each core first, so
// that the first processes do not share one. It is empty where they are not known.
func CPUOrder() []int { return spreadOverCores(Cores()) }

func spreadOverCores(cores [][]int) (order []int) {
	var rest []int
	for _, core := range cores {
		order = append(order, core[0])
		rest = append(rest, core[1:]...)
	}
	slices.Sort(rest)
	return append(order, rest...)
}
