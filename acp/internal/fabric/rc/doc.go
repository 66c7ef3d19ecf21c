// Package rc carries operations between ranks over reliable connections: RDMA WRITE,
// READ, COMPARE-SWAP and FETCH-ADD of an adapter, and WRITE with immediate data for signals.
//
//	net, err := rc.New(dev, host, book, rc.Options{}) // a fabric.Net
//
// # Connections
//
// A rank that first wants something of another one connects to it. A connection has one direction:
// operations go from the rank that has made it, and nothing but their answers back. So nobody
// has to settle who is the server when both begin at once, and what one rank does wrong is
// its own affair: an operation that the target refuses ends its connection, by the rules of
// RC, but no operation of the target's. The rank makes the connection anew, and posts once more what was
// behind the refused operation and cannot have been carried out.
//
// Two ranks that both want something have two connections.
//
// # Memory
//
// A rank has a pointer for each other one. What a connection costs, its queue pair at both ends,
// is there for those only that something was wanted of.
package rc
