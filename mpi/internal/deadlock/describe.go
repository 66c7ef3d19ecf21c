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
