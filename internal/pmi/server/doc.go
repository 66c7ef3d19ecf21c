// Package server implements the manager side of package pmi: PMI-1 and PMI-2 for the
// processes of a job, of softrnic or linked with MPICH. It starts no processes.
//
//	job, err := server.New(server.Options{Size: 4, ID: "job-4711", Notify: func(e server.Event) {
//		// a rank aborts the job, or waits for one that has ended
//	}})
//	go job.Serve(rank, conn)     // a socket whose other end the rank inherits as PMI_FD
//	job.ProcessEnded(rank)       // its process has ended
//	for _, r := range job.Ranks() {
//		fmt.Println(r.Rank, r.State) // 2 waits at the fence
//	}
//
// A transport other than a connection attaches a [Session] and feeds it. Processes that
// inherit no socket connect to a [Port] and authenticate by a secret.
//
// The rules are a state machine without I/O, in book.go.
package server
