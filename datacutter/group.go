package datacutter

// Group is a filter group: filters and the streams between them, which form a
// graph without cycles.
type Group struct {
	Filters []FilterDef
	Streams []Stream
}

// FilterDef is a filter of a group.
type FilterDef struct {
	Name string

	// New makes an instance. It is called once for each, on the instance's
	// host, before any data flows; an error ends the run.
	New func(Instance) (Filter, error) `json:"-"`
}

// Stream carries units one way, from every copy of a filter to every copy of
// another.
type Stream struct {
	Name     string // by which both filters call it; unique in the group
	From, To string // names of filters

	// UnitSize is the size in bytes that no unit exceeds: the granularity in
	// which data is distributed and pipelined. 1 to MaxUnitSize.
	UnitSize int

	// Policy says which copy of the consumer gets a unit.
	Policy Policy

	// Window is the number of units that a producer hands to one consumer
	// ahead of its acknowledgements if Policy is DemandDriven; 0 means 4.
	Window int
}

// MaxUnitSize is the largest Stream.UnitSize, 16 MiB.
const MaxUnitSize = 1 << 24

const defaultWindow = 4

// Policy is how a stream shares units among the copies of its consumer. The
// copies are transparent: filters need not know of them, unless the policy is
// ByKey.
type Policy uint8

const (
	// RoundRobin takes the copies in turn.
	RoundRobin Policy = iota

	// DemandDriven takes the copy that has the fewest units which it has not
	// yet done with, and waits while all have Stream.Window of them. Consumers
	// acknowledge each unit when they ask for the next.
	DemandDriven

	// ByKey takes the copy whose number is the key modulo the number of
	// copies; see Output.SendKey.
	ByKey
)

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
