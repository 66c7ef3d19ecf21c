// Package size parses numbers of bytes with units.
//
//	n, err := size.Parse("64KiB")              // 65536
//	flags.Var(size.Var(&n), "buffer-size", …)  // a flag that takes the same
//
// K and KiB are 1024, M and MiB its square, G and GiB its cube.
package size

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var units = []struct {
	suffix string
	factor int
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}}

// Parse parses a whole number with or without a unit.
func Parse(s string) (int, error) {
	digits, factor := s, 1
	for _, u := range units {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			digits, factor = rest, u.factor
			break
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n > math.MaxInt/factor || n < math.MinInt/factor {
		return 0, fmt.Errorf("%q is not a number like 64, 4K or 1MiB", s)
	}
	return n * factor, nil
}

// A Value is a number of bytes as the value of a flag (flag.Value, pflag.Value).
type Value int

// Var returns a flag value that sets *p.
func Var(p *int) *Value { return (*Value)(p) }

// String implements flag.Value.
func (v *Value) String() string { return strconv.Itoa(int(*v)) }

// Set implements flag.Value.
func (v *Value) Set(s string) error {
	n, err := Parse(s)
	if err == nil {
		*v = Value(n)
	}
	return err
}

// Type implements pflag.Value.
func (*Value) Type() string { return "bytes" }
