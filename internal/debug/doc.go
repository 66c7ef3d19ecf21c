// Package debug is the local HTTP server that exposes the state of a running
// device. It depends on the interface [Device] and on the standard library only,
// because every adapter links it.
//
//	server, err := debug.Serve(dev, debug.Auto)
//	...
//	defer server.Close()
//
// [Auto] is a Unix socket in a directory that only the user may enter, named
// after the process, where cmd/softrnic discovers it. The server serves
//
//	/stat               the result of Device.Stat, as JSON
//	/qp/{number}/history  the result of Device.QP, as JSON
//	/capture            POST starts and DELETE ends a capture (Unix sockets only)
//	/debug/pprof/       profiles of the process
//	/metrics            counters for Prometheus, in programs that call SetMetrics
//
// Access is restricted to the user. A Unix socket is protected by file
// permissions. A TCP endpoint must be on the loopback interface; as it is open to
// every user of the machine there, it cannot make the process write files, and
// rejects requests that a web page might have sent.
package debug
