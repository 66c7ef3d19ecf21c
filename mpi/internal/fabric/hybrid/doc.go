// Package hybrid carries packets over reliable connections to some ranks, and over
// datagrams to the others: memory grows with the connections, of which each rank has a
// limited number, and not with the ranks (PPoPP '07, section 4.3).
//
//	f, err := hybrid.New(dev, host, book, hybrid.Options{Limit: 8}) // a fabric.Fabric
//
// All ranks know the rule: ranks a and b use a connection if (a+b) mod size < Limit. So
// a rank has at most Limit connections, and both ranks of a pair use the same
// transport. A pairwise exchange that goes through the sums in order has Limit rounds
// over connections and the rest over datagrams.
//
// The fabric consists of those of packages rdma and ud, on one adapter and with one
// completion queue, so that a wait covers both.
package hybrid
