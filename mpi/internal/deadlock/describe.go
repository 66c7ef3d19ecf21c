package deadlock

// Describer is a condition that describes the wait for it. The detector calls DescribeWait with
// the engine's lock held while a goroutine waits.
type Describer interface{ DescribeWait() Call }

// Poll describes a condition that a program polls without success, in the words of a wait.
type Poll struct {
	Call
	DependsOn []int       // ranks to probe, a superset of Call.For
	Ready     func() bool // called with the engine's lock: the condition is ready now; nil if unknown
}

// NewPoll returns the description of a condition that depends on the ranks in d.
func NewPoll(d Call, ready func() bool) *Poll { return &Poll{d, d.For, ready} }

// IsReady reports whether the next test of the condition will succeed.
func (p *Poll) IsReady() bool { return p.Ready != nil && p.Ready() }

// A wait or a poll may tell the detector more about itself by these methods.
type (
	// Keyed is a condition for which one call waits many times, such as that of the lock of a
	// window. WaitKey returns the identity of the call.
	Keyed interface{ WaitKey() any }

	// Prober is a wait in a call that other ranks make, too. ProbeCall returns the context id of
	// the communicator and the payload of liveness probes, by which the ranks compare their
	// calls; nil if they cannot be compared.
	Prober interface {
		ProbeCall() (contextID uint32, payload []byte)
	}

	// Background is a wait of a goroutine for a nonblocking call. PollKey returns the key of
	// the engine's record when the program polls that call.
	Background interface{ PollKey() any }
)
