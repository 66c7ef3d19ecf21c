// Package mpi is the Message Passing Interface (MPI 4.1) in Go's manner: processes
// with a number each, their rank, that send each other messages and make
// collective calls. It runs on any device that implements package verbs.
//
// # Use
//
// A program is started once for each rank, by softrnic mpirun -n 4 ./program or
// another process manager that package pmi knows. Alone it is a job of one rank.
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
//	win, err = mpi.WinCreateDynamic(row)               // memory that comes and goes
//	at, err := mpi.WinAttach(win, x)                   // by which others name it: mpi.At(at)
//	err = win.Detach(at)
//
//	err = w.Finalize()
//
// A [World] is the communicator of all ranks, a [Comm] one of some of them, a [Cart]
// one whose ranks are a grid, a [Win] memory of ranks that others reach. docs/mpi.md says what each MPI_ function is called here.
//
// # Buffers
//
// A [Buffer] is memory and what it is made of: mpi.Of(slice), mpi.Value(&x), or a
// column, pieces of a slice, or structs of package datatype. Counts and displacements
// are in its elements. [InPlace] is MPI_IN_PLACE. Memory of a call in the background
// is not to be touched until its [Request] is done.
//
// # Goroutines
//
// All methods may be called from any goroutine at any time: who waits first serves
// the network for all. Collective calls of one communicator are made in the same
// order by all ranks, so goroutines have communicators of their own (see Comm.Dup).
// Calls in the background go on while the program computes; none needs Test for that.
//
// # Errors
//
// What is wrong with a call's arguments is its error, before anything is sent. All
// errors are an [*Error], which says who has called what; in it are, for errors.Is,
// [ErrRank], [ErrCount], [ErrTruncated], [ErrLost] and the others. A collective call
// that has failed at one rank may leave others waiting: call World.Abort, as a program
// does whose main returns early under mpirun.
//
// With SOFTRNIC_MPI_CHECK=1, at all ranks, calls are compared before they are done:
// ranks that call something else, or with another root, count, kind or operation, all
// get an [ErrMismatch] that names who called what, and a message of float64 that is
// received in int32 is an [ErrType].
//
// # When it hangs
//
// After a minute in one call the ranks are asked what they do, and rank 0 says on
// standard error which of them wait for one another, or make collective calls that do
// not belong together: with the calls, the lines of the program, and messages that
// nobody receives. With Options.Watchdog it says what it sees in any case, and at
// World.Report at once. Who waits for a rank that is gone gets ErrLost in time, since
// those who are waited for are asked for signs of life (docs/mpi-hangs.md).
//
// # Environment
//
//	SOFTRNIC_MPI_GIVE_UP     how long a rank may show no sign of life: 10s (Options.GiveUp)
//	SOFTRNIC_MPI_CHECK       1: calls are compared (Options.Check)
//	SOFTRNIC_MPI_COLL        algorithms: "alltoall=bruck,bcast=chain" (Options.Algorithms)
//	SOFTRNIC_MPI_CONNECT     all: connections are made at the start (Options.ConnectAll)
//	SOFTRNIC_MPI_EAGER       longest message in bytes that is sent without asking
//	SOFTRNIC_MPI_FAST        on: short messages by RDMA write, for which their receiver looks
//	SOFTRNIC_MPI_NET         rdma; ud for datagrams by one queue pair; hybrid for both; tcp for comparison
//	SOFTRNIC_MPI_ONESIDED    messages: windows without RDMA, for comparison (Options.OneSided)
//	SOFTRNIC_MPI_RAILS       queue pairs between two ranks, over which long messages are read
//	SOFTRNIC_MPI_RC_LIMIT    of hybrid: how many ranks a rank is connected with at most (Options.RCLimit)
//	SOFTRNIC_MPI_RENDEZVOUS  how longer messages travel: read, write or copy
//	SOFTRNIC_MPI_REPORT_SIGNAL  USR1 or USR2: at this signal rank 0 reports; softrnic mpirun sets it
//	SOFTRNIC_MPI_SHARED      off: collectives are messages, also among ranks of one machine (Options.NoShared)
//	SOFTRNIC_MPI_WATCHDOG    30s: a call that waits so long has rank 0 report; off
package mpi
