// Package procpmi is the process manager of ranks that are workers of package proc. The
// key-value pairs of the ranks travel through the parent, in exchanges.
//
//	proc.Register("bench", "rank", func(ctx context.Context, w *proc.Worker) error {
//		m, err := procpmi.New(ctx, w) // a pmi.Manager
//		world, err := mpi.Init(open, mpi.Options{Manager: m})
//		...
//	})
package procpmi
