// Package ud carries operations between ranks over datagrams of one queue pair, by RDMA over
// UD of package rdm: memory does not grow with connections, of which there are none.
//
//	net, err := ud.New(dev, host, book, ud.Options{}) // a fabric.Net
//
// Operations of package rdm are in no order. So a rank has one at a time under way to each other one, and the next
// is begun when it is done. A signal is a message of 8 bytes, which is sent when the bytes before it are
// in place. Where adapters have no RDMA over UD of their own, the other end's service carries
// operations out.
package ud
