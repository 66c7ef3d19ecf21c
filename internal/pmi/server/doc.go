// Package server is the other side of package pmi: what a process manager does for
// the processes of a job that speak PMI-1 or PMI-2 with it, be they softrnic's or
// linked with MPICH. It starts no processes.
//
//	job, err := server.New(server.Options{Size: 4, ID: "job-4711", Notify: func(e server.Event) {
//		// a rank aborts the job, or waits for one that has ended
//	}})
//	go job.Serve(rank, conn)     // a socket whose other end the rank inherits as PMI_FD
//	job.Ended(rank)              // its process has ended
//	for _, r := range job.Ranks() {
//		fmt.Println(r.Rank, r.State) // 2 waits at the fence
//	}
//
// Whoever has other means to carry bytes than a connection attaches a [Session]
// and feeds it. Processes that inherit no socket connect to a [Port] and prove by a
// secret that they belong to the job.
//
// The rules are in book.go, a state machine: messages in, messages out.
package server
