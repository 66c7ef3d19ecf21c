package coll

// A TransportNet is a Net that reports its transports.
type TransportNet interface {
	Net
	Transports() Transports
}

// Transports is the set of transports of a job's messages. It is the same on all ranks.
type Transports uint8

// The transports. A job may use both, for different pairs of ranks.
const (
	ReliableConnections Transports = 1 << iota // RC
	UnreliableDatagrams                        // UD, made reliable in software
)

func transportsOf(n Net) Transports {
	if c, ok := n.(TransportNet); ok {
		return c.Transports()
	}
	return 0
}

// onlyDatagrams is the Needs.Network of an algorithm for datagrams only;
// knownTransport, of one for any known mix of transports.
func onlyDatagrams(n Net) bool  { return transportsOf(n) == UnreliableDatagrams }
func knownTransport(n Net) bool { return transportsOf(n) != 0 }
