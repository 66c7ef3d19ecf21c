package perftest

// A Verb is the operation of a test.
type Verb uint8

// The verbs.
const (
	Send Verb = iota
	Write
	Read
	Atomic
)

// A Metric is the quantity that a test measures.
type Metric uint8

// The metrics.
const (
	Bandwidth Metric = iota
	Latency
)

// A Test is one of the eight programs.
type Test struct {
	Verb   Verb
	Metric Metric
}

// Tests are the eight programs in perftest's order.
var Tests = []Test{
	{Send, Bandwidth}, {Send, Latency}, {Write, Bandwidth}, {Write, Latency},
	{Read, Bandwidth}, {Read, Latency}, {Atomic, Bandwidth}, {Atomic, Latency},
}

// String returns the program's name without ib_, such as "send_bw".
func (t Test) String() string {
	return [...]string{"send", "write", "read", "atomic"}[t.Verb] + [...]string{"_bw", "_lat"}[t.Metric]
}

// fetches reports whether data moves from the server to the client, so that the server is passive.
func (t Test) fetches() bool { return t.Verb == Read || t.Verb == Atomic }

// roundTrips returns the number of one-way trips between two posts of a latency test.
func (t Test) roundTrips() float64 {
	if t.fetches() {
		return 1
	}
	return 2
}
