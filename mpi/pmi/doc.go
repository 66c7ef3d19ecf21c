// Package pmi implements the process management interface of a job (PMI): the rank of a
// process, the number of ranks, and a key-value space in which the ranks exchange data,
// for example their addresses, before they can communicate. The process manager that
// started the processes provides the service.
//
//	m, err := pmi.Open(ctx)                           // from the environment
//	err = m.Put(fmt.Sprintf("addr-%d", m.Rank()), addr)
//	err = m.Fence(ctx)                                // all ranks have put
//	peer, err := m.Get(ctx, "addr-0")
//	...
//	err = m.Finalize()
//
// Without a manager a process is a job of one rank. [NewLocal] creates a job whose
// ranks are goroutines of one process.
//
// # Managers
//
// Open speaks PMI-1, and PMI-2 with SOFTRNIC_PMI=2, like processes of MPICH. It works
// with softrnic mpirun, mpiexec.hydra of MPICH and Intel MPI, and srun --mpi=pmi2 of
// Slurm, whose plugin speaks both. The environment gives the manager's address:
//
//   - PMI_FD is a socket that the process inherits; PMI_RANK and PMI_SIZE are set.
//   - PMI_PORT is the HOST:PORT of a manager on TCP, and PMI_ID the ID of the process.
//     SOFTRNIC_PMI_SECRET, if set, is sent too.
//
// Managers of PMIx only (mpirun of Open MPI, srun --mpi=pmix) are an error, and so is
// srun without a manager: otherwise every process would be a job of its own.
//
// # Values
//
// The protocols limit values to about a thousand characters without blanks. A value of
// this package is any bytes up to MaxValue: it is encoded in base64 if necessary and
// spread over several keys. Therefore only this package can get the values that it put.
package pmi
