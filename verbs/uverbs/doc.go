// Package uverbs opens RDMA devices of the Linux kernel as a verbs.Device, in pure Go: the same
// program runs on softrnic and on a device that the kernel drives. Its only provider is rxe, the
// kernel's soft-RoCE adapter; other devices are refused by name.
//
//	dev, err := uverbs.Open(uverbs.Options{Name: "rxe0"}) // as rnic.Open
//	pd, err := dev.AllocPD()
//	...
//
// Objects are created by commands written to /dev/infiniband/uverbs0, the ABI that libibverbs
// falls back to. Requests and completions travel through queues that kernel and process both map:
// a list of send requests costs one system call, a list of receives and a Poll none, and neither
// allocates memory. No library of rdma-core is needed.
//
// # Memory
//
// The kernel pins the pages of a memory region. Go never moves heap memory, and the region refers
// to its slice until Close, so any slice can be registered. Pinned memory counts against
// RLIMIT_MEMLOCK (ulimit -l) of an unprivileged process.
//
// # Addresses
//
// Entry 0 of the GID table is the address that Options selects, by default the first IPv4 address,
// because programs of this module connect from entry 0. It has exchanged its place with entry 0
// of the kernel's table; all other entries have the kernel's index.
//
// # Differences from package rnic
//
// The device decides, not this package. The kernel answers Modify, so attributes that rxe does not
// accept are refused there. WC.Failure is always nil: the kernel reports a status only. WC.Time is
// the time of the Poll. Requests of IBTA release 1.5 (FLUSH, ATOMIC WRITE), queue pairs of type
// GSI and RDMA over datagrams do not exist, and a connection manager needs the GSI queue pair,
// which belongs to the kernel: exchange a verbs.Endpoint instead. docs/linux-rxe.md has the
// remaining differences.
package uverbs
