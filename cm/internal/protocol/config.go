package protocol

import "github.com/softrnic/softrnic/wire/mad"

// Time is nanoseconds on a monotonic clock. 0 is never.
type Time int64

// Config is what a Machine needs to know. The zero value of a limit means its
// default.
type Config struct {
	Rand    func() uint32 // ids, transactions and jitter; must not be predictable
	GUID    uint64        // of the adapter
	GID     [16]byte      // of the adapter; requests for others are rejected
	UDPPort uint16        // where the adapter listens if not on 4791, else 0
	MaxMTU  uint8         // largest path MTU accepted, in verbs' encoding

	MaxConns    int // connections in any state; DefaultMaxConns
	MaxTimewait int // of these in TIMEWAIT; DefaultMaxTimewait

	// ServiceTimeout is the code of how long peers are asked, by MRA, to wait
	// for our program; DefaultServiceTimeout.
	ServiceTimeout uint8
}

// Defaults of Config.
const (
	DefaultMaxConns       = 1 << 18
	DefaultMaxTimewait    = 1 << 14
	DefaultServiceTimeout = 22 // 17 s
)

func (c *Config) setDefaults() {
	if c.MaxConns == 0 {
		c.MaxConns = DefaultMaxConns
	}
	if c.MaxTimewait == 0 {
		c.MaxTimewait = DefaultMaxTimewait
	}
	if c.ServiceTimeout == 0 {
		c.ServiceTimeout = DefaultServiceTimeout
	}
	if c.MaxMTU == 0 {
		c.MaxMTU = 5
	}
}

// Bounds on what peers may ask for.
const (
	minInterval       = 10                    // code of the shortest time between repetitions: 4 ms
	maxInterval       = 21                    // of the longest: 8.6 s
	maxServiceTimeout = 24                    // of the longest wait that an MRA can ask for: 69 s
	maxTimewait       = 20                    // of the longest TIMEWAIT: 4.3 s
	maxPendingTime    = Time(120_000_000_000) // a request that our program leaves alone ends after 2 minutes at most
)

// clampInterval is the time that a code of a peer stands for, within bounds.
func clampInterval(code uint8) Time {
	return Time(mad.TimeoutNanos(min(max(code, minInterval), maxInterval)))
}
