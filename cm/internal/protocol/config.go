package protocol

import (
	"net/netip"

	"github.com/softrnic/softrnic/wire/mad"
)

// Time is a point in time or a duration in nanoseconds on a monotonic clock. 0 means never.
type Time int64

// Config configures a Machine. The zero value of a limit means its default.
type Config struct {
	Rand    func() uint32 // source of IDs, transaction IDs and jitter; must be unpredictable
	GUID    uint64        // of the adapter
	GID     [16]byte      // of the adapter; requests for other GIDs are rejected
	UDPPort uint16        // of the adapter, or 0 if it is 4791
	MaxMTU  uint8         // largest accepted path MTU, in verbs' encoding

	// IDPrefix has the upper IDPrefixBits bits of all communication IDs, and zeros in the others.
	IDPrefix     uint32
	IDPrefixBits int

	// OnConnect, if not nil, is called when the peer may hold a connection established: it needs a
	// DREQ if this process ends. OnRelease is called when that is over.
	OnConnect func(peer netip.AddrPort, id, remoteID, remoteQPN uint32)
	OnRelease func(id uint32)

	MaxConns    int // in any state; default DefaultMaxConns
	MaxTimewait int // connections in TIMEWAIT; default DefaultMaxTimewait

	// ServiceTimeout is the code of the time that an MRA requests from peers; default
	// DefaultServiceTimeout.
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

// Bounds on values from peers.
const (
	minInterval       = 10                    // code of the shortest retransmission timeout, 4 ms
	maxInterval       = 21                    // code of the longest retransmission timeout, 8.6 s
	maxServiceTimeout = 24                    // code of the longest extension by an MRA, 69 s
	maxTimewait       = 20                    // code of the longest TIMEWAIT, 4.3 s
	maxPendingTime    = Time(120_000_000_000) // a request without a reply from the application expires after 2 minutes at most
)

// clampInterval returns the retransmission timeout for a peer's code, within bounds.
func clampInterval(code uint8) Time {
	return Time(mad.TimeoutNanos(min(max(code, minInterval), maxInterval)))
}
