// Package ud implements package fabric by datagrams of one queue pair, with the RDMA over UD of package rdm.
// Memory does not grow with connections.
//
//	net, err := ud.New(dev, host, kvs, ud.Options{}) // a fabric.Net
//
// Operations of package rdm are unordered. So a rank has one operation in flight to each other rank, and
// starts the next one when it completes. A signal is a message of 8 bytes, sent when the data before it has
// been delivered. If adapters do not support RDMA over UD, the service of package rdm at the target executes
// the operations.
package ud
