// Package proc runs the worker processes of an experiment. The program starts
// itself again as `PROGRAM worker NAME ROLE`. Parent and workers exchange JSON over
// the worker's stdin and stdout, and the parent copies the worker's stderr with
// the worker's name as a prefix.
//
// A worker function is registered under a name and a role. It exchanges addresses
// with its peers and then serves the calls of the parent:
//
//	func init() {
//		proc.Register("pingpong", "end", func(ctx context.Context, w *proc.Worker) error {
//			conn := listen()
//			peers, err := proc.Exchange(ctx, w, conn.LocalAddr())
//			if err != nil {
//				return err
//			}
//			return proc.Serve(ctx, w, func(ctx context.Context, iters int) (float64, error) {
//				return run(conn, peers[1-w.Rank], iters)
//			})
//		})
//	}
//
// The parent starts a group of workers and calls all of them at once, as often as it
// likes. Between calls the workers block in a read and use no processor time, so
// the groups of several targets can alternate:
//
//	g, err := proc.Start(ctx, proc.Options{}, proc.Spec{Name: "pingpong", Role: "end"}, proc.Spec{Name: "pingpong", Role: "end"})
//	defer g.Close()
//	results, err := proc.Call[int, float64](ctx, g, 1000)
//
// With Options.Ranks the workers are also the ranks of a job of package pmi, started as
// those of softrnic mpirun are, so that they may call mpi.Init or acp.Init.
//
// # Failure
//
// Every wait has a timeout. When one worker fails or exits early, every
// call on its group fails with a [WorkerError] that carries the
// end of its stderr. Close ends each worker through its own process handle and
// waits for it. A worker exits when its parent ends and closes its stdin.
//
// A program that uses the package, including a test binary, must call
// [ServeIfWorker] before anything else.
package proc
