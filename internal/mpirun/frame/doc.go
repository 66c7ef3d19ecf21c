// Package frame implements the protocol between softrnic mpirun and its agents, one
// on each host: frames of a kind, a rank and bytes over the agent's standard input
// and output. ssh carries them, so there is no port for strangers, and the end of
// either side closes the other's input.
//
//	w := frame.NewWriter(out)
//	err := w.Write(frame.Stdout, rank, b)
//
//	kind, rank, b, err := frame.NewReader(in).Next()
//
// An agent begins with Hello, since the startup files of a shell may have written
// before. Then the launcher sends Start, and Stdin, PMI, Signal and Stop. The agent
// sends HostReady, Started or Failed for each rank, Stdout, Stderr, PMI, Credit, Note and
// Exited, and Finished at the end.
package frame
