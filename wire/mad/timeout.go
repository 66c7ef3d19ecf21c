package mad

// timeoutUnit is what timeouts of 5 bits count in: 4.096 us.
const timeoutUnit = 4096

// TimeoutNanos is the time in nanoseconds that a timeout of 5 bits stands for:
// 4.096 us * 2^code.
func TimeoutNanos(code uint8) int64 { return timeoutUnit << (code & 31) }

// TimeoutCode is the smallest code that stands for at least ns nanoseconds, 31
// if there is none.
func TimeoutCode(ns int64) uint8 {
	code := uint8(0)
	for code < 31 && TimeoutNanos(code) < ns {
		code++
	}
	return code
}
