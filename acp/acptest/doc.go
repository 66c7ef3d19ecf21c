// Package acptest runs the ranks of a job as goroutines of one process, for tests
// and examples of programs that use package acp:
//
//	func TestRing(t *testing.T) {
//		require.NoError(t, acptest.Run(4, func(p *acp.Process) error {
//			return ring(p)
//		}))
//	}
//
// Each rank has its own adapter on a free address of 127.0.0.0/8. Only the process manager is simulated.
package acptest
