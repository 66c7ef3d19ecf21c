// Package hybrid carries packets over reliable connections to some ranks, and over
// datagrams to the others: memory grows with the connections, of which each rank has
// so many at most, and not with the ranks (PPoPP '07, section 4.3).
//
//	f, err := hybrid.New(dev, host, book, hybrid.Options{Limit: 8}) // a fabric.Fabric
//
// Which ranks talk how is a rule that all of them know. Those whose numbers add up
// to the same, modulo the size of the job, are pairs; of the sums from 0 to Limit-1
// pairs are connected, of all others they are not. So a rank is connected with at
// most Limit others, and both of a pair talk the same way. An exchange in pairs that
// goes through the sums one after the other has Limit rounds by connections, and the
// rest by datagrams.
//
// It is made of the fabrics of packages rdma and ud, on one adapter and with one
// completion queue, so that who waits waits for both.
package hybrid
