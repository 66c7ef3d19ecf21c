// Softrnic is the user's tool of the adapter.
//
//	softrnic devinfo [-v]       the attributes of a device, in the format of ibv_devinfo
//	softrnic doctor             problems of this machine, with the commands to fix them
//	softrnic stat               counters of the devices that processes of the user have open
//	softrnic history            the last packets and transitions of their queue pairs
//	softrnic capture            packets of a running process, for Wireshark
//	softrnic pingpong           exchanges messages, as ibv_rc_pingpong and others
//	softrnic perf               bandwidth and latency, as ib_send_bw and others of perftest
//	softrnic rping              RDMA read and write over RDMA-CM, as rping
//	softrnic ucmatose           connections and messages over RDMA-CM, as ucmatose
//	softrnic udaddy             datagrams over RDMA-CM, as udaddy
//	softrnic sdp proxy          relays TCP connections over SDP
//	softrnic sdp cat            netcat over SDP
//	softrnic mpirun             runs the ranks of an MPI job, here or on other hosts
//	softrnic version
//
// Flags of the commands that open a device: --addr is the address of the device
// (SOFTRNIC_ADDR; default: a free one of the loopback interface), --device is one of
// the kernel's devices instead (devinfo, pingpong and perf), --impair injects faults
// (SOFTRNIC_IMPAIR), --json writes JSON. stat, history and capture find
// programs that run with SOFTRNIC_DEBUG=auto.
//
// The exit status is 0, or 1 after a failure or a failed check, or 2 for an invalid
// command line or environment variable. That of mpirun is the status of the first
// failed rank.
package main
