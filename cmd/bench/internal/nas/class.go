// Package nas is the common part of the NAS Parallel Benchmarks: the classes of
// problems, the random number generator, and the report. The benchmarks are
// its subpackages. Each follows the specification of NPB 3.4 and verifies its results
// against the published values:
//
//	is    integer sort: buckets over Alltoallv, and reductions
//	cg    conjugate gradient: sums in rows of a grid of ranks, and a transposition
//	ep    embarrassingly parallel: random numbers, and three sums at the end
//
// All have the same form:
//
//	report, err := is.Run(world.Comm, nas.A) // by all ranks
//	if world.Rank() == 0 {
//		fmt.Print(report)
//	}
//
// From the command line: go run ./cmd/bench nas is --class A -n 4.
package nas

import (
	"errors"
	"fmt"
)

// A Class is the size of a problem. Each class is several times as much work as the previous
// one.
type Class byte

// The supported classes: S for tests, W for workstations of the 1990s, and A to C for
// comparisons.
const (
	S Class = 'S'
	W Class = 'W'
	A Class = 'A'
	B Class = 'B'
	C Class = 'C'
)

// Classes lists the supported classes, the smallest first.
var Classes = []Class{S, W, A, B, C}

// Errors wrapped by the Run functions.
var (
	ErrClass = errors.New("nas: unknown class, want S, W, A, B or C")
	ErrRanks = errors.New("nas: invalid number of ranks")
)

// String returns the letter of the class.
func (c Class) String() string { return string(rune(c)) }

// ParseClass parses a letter of either case.
func ParseClass(s string) (Class, error) {
	for _, c := range Classes {
		if s == c.String() || len(s) == 1 && s[0] == byte(c)+'a'-'A' {
			return c, nil
		}
	}
	return 0, fmt.Errorf("class %q: %w", s, ErrClass)
}

// CheckPowerOfTwo returns an ErrRanks unless n is a power of two.
func CheckPowerOfTwo(n int) error {
	if n > 0 && n&(n-1) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d, want a power of two", ErrRanks, n)
}
