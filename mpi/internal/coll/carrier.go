package coll

// TransportNet is a Net that tells what its messages travel by.
type TransportNet interface {
	Net
	Transports() Transports
}

// Transports is what messages of a job travel by. It is the same on all ranks.
type Transports uint8

// There may be pairs of ranks of both kinds.
const (
	ReliableConnections Transports = 1 << iota // that are reliable
	UnreliableDatagrams                        // that are made so: UD
)

func transportsOf(n Net) Transports {
	if c, ok := n.(TransportNet); ok {
		return c.Transports()
	}
	return 0
}

// onlyDatagrams is Needs.Network of those who send nothing but datagrams, and someCarrier
// of those whose pairs may be of both kinds.
func onlyDatagrams(n Net) bool  { return transportsOf(n) == UnreliableDatagrams }
func knownTransport(n Net) bool { return transportsOf(n) != 0 }
