package reliability

// Time is a point on the adapter's monotonic clock in nanoseconds. The zero
// Time means "never" where a deadline is meant.
type Time int64

// Earlier returns the earlier of two deadlines, of which either may be never.
func Earlier(a, b Time) Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Durations in nanoseconds.
const (
	Microsecond = 1000
	Millisecond = 1000 * Microsecond
)
