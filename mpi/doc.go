// Package mpi implements the Message Passing Interface (MPI 4.1) for Go: point-to-point
// messages, collective calls, one-sided communication and communicators. It runs on any
// device that implements package verbs.
//
// # Use
//
// A process manager starts the program once for each rank: softrnic mpirun -n 4 ./program,
// or another one that package pmi supports. A program started alone is a job of one rank.
//
//	w, err := mpi.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, mpi.Options{})
//	if err != nil {
//		log.Fatal(err)
//	}
//	next, before := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
//
//	x, got := []float64{1, 2, 3}, make([]float64, 3)
//	in, err := w.Irecv(mpi.Of(got), before, tag)      // a message around the ring
//	err = w.Send(mpi.Of(x), next, tag)
//	status, err := in.Wait()
//
//	err = w.Allreduce(mpi.Of(x), mpi.Of(got), mpi.Sum) // got[i] is the sum of all ranks' x[i]
//	r, err := w.Ibcast(mpi.Of(x), 0)                   // in the background, while we compute
//	_, err = r.Wait()
//
//	row, err := w.Split(w.Rank()/2, w.Rank())          // a communicator of some of the ranks
//	err = row.Barrier()
//
//	win, mine, err := mpi.WinAllocate[float64](row, 100) // memory that the others write to
//	err = win.Fence()
//	err = win.Put(mpi.Of(x), 0, mpi.At(10))            // rank 0's mine[10:13], at the next Fence
//	err = win.Fence()
//
//	win, err = mpi.WinCreateDynamic(row)               // memory attached and detached later
//	at, err := mpi.WinAttach(win, x)                   // the address for other ranks: mpi.At(at)
//	err = win.Detach(at)
//
//	err = w.Finalize()
//
// A [World] is the communicator of all ranks, a [Comm] a communicator, a [Cart] a
// communicator with a Cartesian topology, and a [Win] a window for one-sided
// communication. docs/mpi.md maps each MPI_ function to its name here.
//
// # Buffers
//
// A [Buffer] is memory with its datatype. [Of], [Bytes] and [Bools] make one of a slice,
// [Value] of a variable, and [Strided], [Indexed] and [Structs] of memory with a layout.
// Counts and displacements are in elements. [InPlace] is MPI_IN_PLACE. The program must not
// touch the buffer of a nonblocking call until its [Request] is done.
//
// # Goroutines
//
// All methods are safe for concurrent use (MPI_THREAD_MULTIPLE): the first waiter drives
// progress for all. All ranks make the collective calls of a communicator in the same order,
// so each goroutine that makes collective calls needs its own communicator (see Comm.Dup).
// Nonblocking calls progress while the program computes, without calls of Test.
//
// # Errors
//
// A call validates its arguments before it sends anything. Every error is an [*Error] with
// the call, the rank and the peer; it wraps [ErrRank], [ErrCount], [ErrTruncated],
// [ErrLost] or another sentinel for errors.Is. A collective call that fails at one rank may
// leave other ranks waiting: call World.Abort, or return early from main under mpirun.
//
// With SOFTRNIC_MPI_CHECK=1 at all ranks, the ranks compare every collective call before
// they execute it. If the calls differ in function, root, count, datatype or operation, all
// ranks get an [ErrMismatch] that lists the calls by rank. A message of float64 received
// into int32 is an [ErrType].
//
// # Deadlock detection
//
// When a rank waits in one call for a minute, rank 0 queries the state of all ranks. If some
// ranks deadlock or make collective calls that do not match, rank 0 prints a report on
// standard error with the calls, the lines of the program and the unmatched messages. With
// Options.Watchdog it always prints the report; World.Report returns one at once. A rank
// that waits for a failed rank gets ErrLost, because waiters send liveness probes
// (docs/mpi-hangs.md).
//
// # Environment
//
//	SOFTRNIC_MPI_GIVE_UP     liveness timeout of a rank, default 10s (Options.GiveUp)
//	SOFTRNIC_MPI_CHECK       1: compare calls before they execute (Options.Check)
//	SOFTRNIC_MPI_COLL        algorithms: "alltoall=bruck,bcast=chain" (Options.Algorithms)
//	SOFTRNIC_MPI_CONNECT     all: connect all ranks at the start (Options.ConnectAll)
//	SOFTRNIC_MPI_EAGER       eager threshold: length in bytes of the longest eager message
//	SOFTRNIC_MPI_FAST        on: short messages by RDMA write, the receiver polls memory
//	SOFTRNIC_MPI_FLOW        flow control of short messages over RC: shared, credit, rdma, nic (Flow),
//	                         unless the program sets RDMAOptions.Fast
//	SOFTRNIC_MPI_NET         rdma (RC); ud (datagrams, one queue pair); hybrid (both); tcp for comparison
//	SOFTRNIC_MPI_ONESIDED    messages: windows without RDMA, for comparison (Options.OneSided)
//	SOFTRNIC_MPI_RAILS       queue pairs per pair of ranks, over which rendezvous messages are striped
//	SOFTRNIC_MPI_RC_LIMIT    hybrid: maximum number of connected peers of a rank (Options.RCLimit)
//	SOFTRNIC_MPI_RENDEZVOUS  rendezvous protocol: read, write or copy
//	SOFTRNIC_MPI_REPORT_SIGNAL  USR1 or USR2: rank 0 reports at this signal; softrnic mpirun sets it
//	SOFTRNIC_MPI_SHARED      off: collectives use messages also within a node (Options.NoShared)
//	SOFTRNIC_MPI_WATCHDOG    30s: time in one call after which rank 0 reports; off
//
// # How a message travels
//
//	Comm.Send          send.go              Comm.Recv          recv.go
//	   v                                       ^
//	pt2pt.Request      internal/pt2pt       pt2pt.Request      internal/pt2pt
//	   | arguments, payload                    | status, payload
//	   v                                       |
//	engine.Engine      internal/engine      engine.Engine      internal/engine
//	   | the lock of the rank                  | a waiting call polls for all calls
//	   v                                       |
//	protocol.Core      internal/protocol    protocol.Core      internal/protocol, internal/match
//	   | eager or rendezvous                   ^ matching, unexpected messages
//	   v                                       |
//	fabric.Fabric      internal/fabric      fabric.Fabric      internal/fabric
//	   |                                       ^
//	   +-- packets: rdma, ud, hybrid or tcp ---+
//
// A collective call (collective.go, icollective.go, pcollective.go) is an operation of
// internal/collective, which runs an algorithm of internal/coll over messages, RDMA writes or,
// within a node, shared memory. One-sided operations (win_operations.go) are RDMA transfers of the
// fabric or active messages that the target serves (internal/onesided).
package mpi
