package nas

import (
	"errors"
	"fmt"
)

// Class is the size of a problem. Each class is some times as much work as the
// one before it.
type Class byte

// The classes that can be chosen: a small one for tests, that of a workstation of
// the nineties, and three for comparisons.
const (
	S Class = 'S'
	W Class = 'W'
	A Class = 'A'
	B Class = 'B'
	C Class = 'C'
)

// Classes lists them, the smallest first.
var Classes = []Class{S, W, A, B, C}

// Errors that Run functions wrap.
var (
	ErrClass = errors.New("there are the classes S, W, A, B and C")
	ErrRanks = errors.New("not a number of ranks that the benchmark can run on")
)

// String is the class's letter.
func (c Class) String() string { return string(rune(c)) }

// ParseClass reads a letter, of either case.
func ParseClass(s string) (Class, error) {
	for _, c := range Classes {
		if s == c.String() || len(s) == 1 && s[0] == byte(c)+'a'-'A' {
			return c, nil
		}
	}
	return 0, fmt.Errorf("class %q: %w", s, ErrClass)
}

// CheckPowerOfTwo is nil if n is one, and else an ErrRanks that says what to do.
func CheckPowerOfTwo(n int) error {
	if n > 0 && n&(n-1) == 0 {
		return nil
	}
	return fmt.Errorf("%d: %w: want a power of two", n, ErrRanks)
}
