// Package mpitest runs the ranks of a job as goroutines of one process, for tests
// and examples of programs that use package mpi:
//
//	func TestRing(t *testing.T) {
//		require.NoError(t, mpitest.Run(4, func(w *mpi.World) error {
//			return ring(w.Comm)
//		}))
//	}
//
// Each rank has an adapter of its own, on a free address of 127.0.0.0/8, so what
// runs is the whole of it but the process manager.
package mpitest
