package mad

// timeoutUnit is the unit of 5-bit timeout codes in nanoseconds: 4.096 us.
const timeoutUnit = 4096

// TimeoutNanos returns the time in nanoseconds of a 5-bit timeout code: 4.096 us *
// 2^code.
func TimeoutNanos(code uint8) int64 { return timeoutUnit << (code & 31) }

// TimeoutCode returns the smallest timeout code of at least ns nanoseconds, 31 if
// there is none.
func TimeoutCode(ns int64) uint8 {
	code := uint8(0)
	for code < 31 && TimeoutNanos(code) < ns {
		code++
	}
	return code
}
