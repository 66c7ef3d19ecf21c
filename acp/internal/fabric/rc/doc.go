// Package rc implements package fabric by reliable connections: RDMA WRITE, READ, COMPARE-SWAP and FETCH-ADD
// of the adapter, and WRITE with immediate data for signals.
//
//	net, err := rc.New(dev, host, kvs, rc.Options{}) // a fabric.Net
//
// # Connections
//
// A rank connects to another rank on first use. A connection is unidirectional: operations go from the rank
// that dialed, and only replies come back. So two ranks that connect at the same time need no tie-break, and
// an error stays with the rank that caused it: by the rules of RC, an operation that the target refuses
// breaks its connection, but no operation of the target. The rank reconnects and reposts the operations
// behind the refused one, which the target cannot have executed.
//
// Two ranks that access each other have two connections.
//
// # Memory
//
// A rank has one pointer for each other rank. The queue pairs of a connection, one at each end, exist only
// for ranks that have been accessed.
package rc
