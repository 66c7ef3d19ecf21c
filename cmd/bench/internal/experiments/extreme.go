package experiments

import "fmt"

// An extreme is the largest or smallest of some figures, and where it was.
type extreme struct {
	value float64
	where string
	seen  bool // there was any
}

// most takes note of a figure if it is the largest.
func (e *extreme) most(value float64, where string, args ...any) {
	if !e.seen || value > e.value {
		*e = extreme{value, fmt.Sprintf(where, args...), true}
	}
}

// least takes note of a figure if it is the smallest.
func (e *extreme) least(value float64, where string, args ...any) {
	if !e.seen || value < e.value {
		*e = extreme{value, fmt.Sprintf(where, args...), true}
	}
}
