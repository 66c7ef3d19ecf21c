// Package debug lets one look into a running device: an HTTP server on a local
// endpoint, its client, and the way the two find each other.
//
//	server, err := debug.Serve(dev, debug.Auto)
//	...
//	defer server.Close()
//
// [Auto] is a Unix socket in a directory that only the user may enter, named
// after the process, so that [Discover] finds every process of the user:
//
//	for _, p := range must(debug.Discover(ctx)) {
//		fmt.Println(p.Report.Process.PID, p.Report.Counters.SentPkts)
//	}
//
// The server answers to
//
//	/metrics            counters for Prometheus; ?per_qp=false sums queue pairs up
//	/stat               Report: the process and rnic.Snapshot, as JSON
//	/qp/{number}/history  rnic.QPInfo of one queue pair with its flight recorder
//	/capture            POST starts and DELETE ends a capture (Unix sockets only)
//	/debug/pprof/       profiles of the process
//
// It is for the user alone. A Unix socket is protected by file permissions. A
// TCP endpoint is refused unless it is on the loopback interface; since there
// it is open to every user of the machine, it cannot make the process write
// files, and requests that a web page might have sent are refused.
//
// Programs use it through package rnic/rnicdebug.
package debug
