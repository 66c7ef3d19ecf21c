package datacutter

// Group is a filter group: filters and the streams between them, which form an acyclic graph.
type Group struct {
	Filters []FilterDef
	Streams []Stream
}

// FilterDef defines a filter of a group.
type FilterDef struct {
	Name string

	// New creates the filter of an instance. It is called once for each instance, on its host, before data
	// flows. An error ends the run.
	New func(Instance) (Filter, error) `json:"-"`
}

// Stream carries units in one direction, from every copy of a filter to every copy of another one.
type Stream struct {
	Name     string // unique in the group; filters use it to find the stream
	From, To string // names of filters

	// UnitSize is the maximum length of a unit in bytes, from 1 to MaxUnitSize: the granularity in which data
	// is distributed and pipelined.
	UnitSize int

	// Policy selects the copy of the consumer that gets a unit.
	Policy Policy

	// Window is the maximum number of unacknowledged units that a producer sends to one consumer if Policy is
	// DemandDriven. 0 means 4.
	Window int
}

// MaxUnitSize is the maximum Stream.UnitSize, 16 MiB.
const MaxUnitSize = 1 << 24

const defaultWindow = 4

// Policy is the distribution of a stream's units over the copies of its consumer. The copies are transparent:
// filters need not know of them, unless the policy is ByKey.
type Policy uint8

const (
	// RoundRobin selects the copies in turn.
	RoundRobin Policy = iota

	// DemandDriven selects the copy with the fewest unacknowledged units, and blocks while all copies have
	// Stream.Window of them. A consumer acknowledges a unit when it asks for the next one.
	DemandDriven

	// ByKey selects the copy whose number is the key modulo the number of copies; see Output.SendKey.
	ByKey
)

// String implements fmt.Stringer.
func (p Policy) String() string {
	switch p {
	case RoundRobin:
		return "round robin"
	case DemandDriven:
		return "demand driven"
	case ByKey:
		return "by key"
	}
	return "unknown policy"
}
