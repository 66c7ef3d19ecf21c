// Package cpus starts processes that stay on some of this machine's processors.
//
// The ranks of a job that has more of them than there are processors run sooner, and
// meet sooner, if each has its place: the kernel need not find one for it whenever it
// wakes. A [Binding] says which places ranks get, and [On] starts one there:
//
//	sets, err := cpus.Auto.Places(len(ranks))
//	for i, cmd := range ranks {
//		err := cpus.RunOn(cpus.SetOf(sets, i), cmd.Start)
//	}
//
// Where processors are not known, which is everywhere but on Linux, processes stay
// nowhere.
package cpus

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/internal/spelling"
)

// A Binding determines the processors to which processes of one machine are bound.
type Binding string

const (
	// Auto binds each to a processor where there are more of them than processors, and
	// as many for each. Where they do not come out even, or each may have a
	// processor to itself, the kernel does better, or as well.
	Auto Binding = "auto"
	// None binds no rank.
	None Binding = "none"
	// Core binds each to the processors of one core.
	Core Binding = "core"
	// Thread binds each to one processor: a hardware thread.
	Thread Binding = "hwthread"
)

// ErrUnsupported reports that this system cannot bind processes to processors.
var ErrUnsupported = errors.New("processes cannot be bound to processors on this system")

// ParseBinding parses the name of a binding. It accepts Open MPI's suffix :overload-allowed, which
// is always the case.
func ParseBinding(name string) (Binding, error) {
	plain, _ := strings.CutSuffix(name, ":overload-allowed")
	switch b := Binding(plain); b {
	case Auto, None, Core, Thread:
		return b, nil
	}
	return "", fmt.Errorf("no binding %q: want auto, none, core or hwthread%s", name, spelling.Hint(plain, string(Auto), string(None), string(Core), string(Thread)))
}

// CPUSets returns the sets of processors to which n processes are bound in turn, or nil without
// binding. Auto is nil where binding is not permitted; for the others RunOn returns that error.
func (b Binding) CPUSets(n int) ([][]int, error) {
	sets, err := b.setsFor(n, Cores())
	if b == Auto && RunOn(SetOf(sets, 0), func() error { return nil }) != nil {
		return nil, nil
	}
	return sets, err
}

// setsFor is CPUSets on a machine with these cores.
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

// SetOf returns the set of process i, or nil without binding.
func SetOf(sets [][]int, i int) []int {
	if len(sets) == 0 {
		return nil
	}
	return sets[i%len(sets)]
}

// CPUOrder returns the processors that this process may use, one of each core first, so that the
// first processes share no core. It is empty where they are not known.
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
