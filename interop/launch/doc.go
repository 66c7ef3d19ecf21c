// Package launch holds the tests of MPI jobs on several hosts: softrnic mpirun over
// OpenSSH's sshd in network namespaces, and the commands of Slurm over daemons that
// the tests start.
//
//	go test -tags interop -count=1 ./interop/launch
//
// They need root, ip (iproute2), sshd (openssh-server) and Slurm (slurm-wlm, munge).
// Where one of these is missing, the tests that need it are skipped with the reason. The test
// binary runs itself again in its own namespaces for network, processes, mounts and the host
// name, so it leaves nothing behind, even if it is killed.
package launch
