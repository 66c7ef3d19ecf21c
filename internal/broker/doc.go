// Package broker lets the devices of several processes share one address and UDP port.
//
// RoCE has one port, 4791, and peers know an adapter by its address alone. So 64 sockets are
// bound to the address once, as a group of SO_REUSEPORT, and a classic BPF program in the
// kernel selects among them (filter_linux.go). A device has one of 64 slots: the socket of
// that number, and the queue pair numbers and communication IDs whose top 6 bits are that
// number.
//
//	   packet to QPN          top 6 bits of the QPN --------+
//	   CM message to QP 1     top 6 bits of the peer's -----+--> socket of a slot --> process
//	                          reference to our ID           |
//	   REQ, SIDR_REQ          slot that listens ------------+
//
//	m, err := broker.Join(addr)      // the first process binds the sockets, others receive them
//	conn, err := link.Adopt(o, m.Socket())
//	ok, err := m.Register(service)   // m.Slot() gets the requests for service
//	err = m.Close()
//
// No process is on the way of a packet. Every process holds all 64 sockets, because the kernel
// would renumber a group that loses one, and a table in shared memory with the slots and
// services in use, from which the program is built (table_linux.go). Names of abstract Unix
// sockets make them exclusive: they belong to the network namespace, as UDP addresses do, and
// vanish with their process.
//
//	@softrnic/ADDR:PORT/0..63     held by the owners of the slots
//	@softrnic/ADDR:PORT/broker    held by the broker
//
// At each name a process hands the sockets and the table to others of the same user
// (handout_linux.go). The broker is a goroutine of one of the processes. It notices the end of
// the others, takes their services out of the table and drains their sockets. When it ends,
// another process takes its name (watch_linux.go). Packets that the kernel has merged may reach
// the wrong process, which sends them on (forward.go).
package broker
