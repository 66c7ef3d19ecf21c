// Package proc runs the worker processes of an experiment. The program starts
// itself again as `PROGRAM worker NAME ROLE`; parent and workers talk JSON over
// the worker's stdin and stdout, and what a worker writes to stderr is passed
// through with its name in front.
//
// A worker registers under a name and a role, exchanges what its peers need to
// know, and then serves what the parent asks:
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
// The parent starts a group of them and calls all at once, as often as it
// likes; between calls the workers wait in a blocked read and cost nothing, so
// the groups of several subjects can take turns:
//
//	g, err := proc.Start(ctx, proc.Options{}, proc.Spec{Name: "pingpong", Role: "end"}, proc.Spec{Name: "pingpong", Role: "end"})
//	defer g.Close()
//	results, err := proc.Call[int, float64](ctx, g, 1000)
//
// # Failure
//
// Every wait has a time limit. When one worker fails, or exits before it is
// told to, every call on its group fails with a [WorkerError] that carries the
// end of its stderr. Close ends each worker through its own process handle and
// waits for it. A worker whose parent is gone sees its stdin close and exits.
//
// A program that uses the package, a test binary too, must hand over to
// [ServeIfWorker] before it does anything else.
package proc
