// Package endpoint is the local HTTP server through which one looks into a
// running device. It knows nothing of devices but what a [Device] tells, and
// links nothing but the standard library, because every adapter has it in it.
//
//	server, err := endpoint.Serve(dev, endpoint.Auto)
//	...
//	defer server.Close()
//
// [Auto] is a Unix socket in a directory that only the user may enter, named
// after the process, where the tools of package internal/debug look. The server
// answers to
//
//	/stat               what Device.Stat returns, as JSON
//	/qp/{number}/history  what Device.QP returns, as JSON
//	/capture            POST starts and DELETE ends a capture (Unix sockets only)
//	/debug/pprof/       profiles of the process
//	/metrics            counters for Prometheus, in programs that have linked them in (SetMetrics)
//
// It is for the user alone. A Unix socket is protected by file permissions. A
// TCP endpoint is refused unless it is on the loopback interface; since there
// it is open to every user of the machine, it cannot make the process write
// files, and requests that a web page might have sent are refused.
package endpoint
