package coll

// Carrier is a Net that tells what its messages travel by.
type Carrier interface {
	Net
	Carried() Carried
}

// Carried is what messages of a job travel by. It is the same on all ranks.
type Carried uint8

// There may be pairs of ranks of both kinds.
const (
	ByConnections Carried = 1 << iota // that are reliable
	ByDatagrams                       // that are made so: UD
)

func carried(n Net) Carried {
	if c, ok := n.(Carrier); ok {
		return c.Carried()
	}
	return 0
}

// datagrams is Needs.Network of those who send nothing but datagrams, and someCarrier
// of those whose pairs may be of both kinds.
func datagrams(n Net) bool   { return carried(n) == ByDatagrams }
func someCarrier(n Net) bool { return carried(n) != 0 }
