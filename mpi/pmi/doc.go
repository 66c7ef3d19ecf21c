// Package pmi is how the processes of a job learn of one another: their ranks,
// their number, and whatever each wants the others to know before they can talk,
// such as its address. A process manager, which has started them, is between them.
//
//	m, err := pmi.Open(ctx)                           // from the environment
//	err = m.Put(fmt.Sprintf("addr-%d", m.Rank()), addr)
//	err = m.Fence(ctx)                                // everybody has put
//	peer, err := m.Get(ctx, "addr-0")
//	...
//	err = m.Finalize()
//
// Without a manager a process is a job of one rank. [NewLocal] makes a job whose
// ranks are goroutines of one process.
//
// # Managers
//
// Open speaks PMI-1, and PMI-2 with SOFTRNIC_PMI=2, as MPICH's processes do, with
// softrnic mpirun, mpiexec.hydra of MPICH and Intel MPI, and srun --mpi=pmi2 of
// Slurm, whose plugin speaks both. The manager says in the environment where it is:
//
//   - PMI_FD is a socket that the process inherits; PMI_RANK and PMI_SIZE are set.
//   - PMI_PORT is the HOST:PORT of a manager that is reached by TCP, and PMI_ID who
//     the process is there. SOFTRNIC_PMI_SECRET, if set, is told as well.
//
// Managers of PMIx only (mpirun of Open MPI, srun --mpi=pmix) are an error, and so
// is srun without a manager: else every process would be a job of its own.
//
// # Values
//
// The protocols have room for about a thousand characters without blanks. A value
// of this package is any bytes of any length (to MaxValue): it is written in
// base64 where it has to be and spread over as many keys as it takes. So only this package
// gets what it has put.
package pmi
