// Package frame is what softrnic mpirun and its agents, one on each host, say to
// each other through the agent's standard input and output: frames of a kind, a
// rank and bytes. ssh carries them, so there is no port that a stranger could find,
// and what ends one of the two ends the other's input.
//
//	w := frame.NewWriter(out)
//	err := w.Write(frame.Stdout, rank, b)
//
//	kind, rank, b, err := frame.NewReader(in).Next()
//
// An agent begins with Hello, since a shell's startup files may have said something
// before. Then come, from the launcher, Start, and Stdin, PMI, Kick and End, and from the
// agent Started or Failed for each rank, Stdout, Stderr, PMI, Credit, Note and
// Exited, and Bye at the end.
package frame
