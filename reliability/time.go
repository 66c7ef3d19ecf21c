package reliability

// A Time is a point on the adapter's monotonic clock in nanoseconds. As a
// deadline, 0 means never.
type Time int64

// Earlier returns the earlier of two deadlines.
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
