// Package acptest runs the ranks of a job as goroutines of one process, for tests
// and examples of programs that use package acp:
//
//	func TestRing(t *testing.T) {
//		require.NoError(t, acptest.Run(4, func(p *acp.Process) error {
//			return ring(p)
//		}))
//	}
//
// Each rank has an adapter of its own, on a free address of 127.0.0.0/8, so what
// runs is the whole of it but the process manager.
package acptest
