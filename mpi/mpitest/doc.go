// Package mpitest runs the ranks of a job as goroutines of one process, for tests and
// examples of programs that use package mpi:
//
//	func TestRing(t *testing.T) {
//		require.NoError(t, mpitest.Run(4, func(w mpi.World) error {
//			return ring(w.Comm)
//		}))
//	}
//
// Each rank has its own adapter, on a free address of 127.0.0.0/8: everything except
// the process manager is as in a real job.
package mpitest
