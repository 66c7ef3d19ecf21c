package measure

import "time"

// The units of every figure that bench prints.
const (
	Bytes             = "B"          // of one message or packet's payload
	Microseconds      = "us"         // half a round trip, unless a row says otherwise
	MegabytesPerSec   = "MB/s"       // payload only, 1 MB = 1e6 bytes
	MessagesPerSecond = "messages/s" // completed messages
)

// MBps is the payload rate of n bytes in d, in MB/s; 0 if d is not positive.
func MBps(n int64, d time.Duration) float64 { return PerSecond(n, d) / 1e6 }

// PerSecond is how many of n fall into one second of d; 0 if d is not positive.
func PerSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// Micros is d in microseconds, fractions kept.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
