// Softrnic is the user's tool of the adapter.
//
//	softrnic devinfo [-v]       the attributes of a device, in the format of ibv_devinfo
//	softrnic doctor             problems of this machine, with the commands to fix them
//	softrnic stat               counters of the devices that processes of the user have open
//	softrnic history            the last packets and transitions of their queue pairs
//	softrnic capture            packets of a running process, for Wireshark
//	softrnic pingpong           as ibv_rc_pingpong and its sisters do
//	softrnic perf               as perftest's ib_send_bw and its sisters do
//	softrnic rping              as rping does: RDMA read and write over RDMA-CM
//	softrnic ucmatose           as ucmatose does: connections and messages over RDMA-CM
//	softrnic udaddy             as udaddy does: datagrams over RDMA-CM
//	softrnic sdp proxy          passes TCP connections on over SDP, and back
//	softrnic sdp cat            netcat over SDP
//	softrnic mpirun             runs the ranks of an MPI job, here or on other hosts
//	softrnic version
//
// Flags of the commands that open a device: --addr says which address a device opens
// (SOFTRNIC_ADDR; a free one on the loopback interface unless given), --impair
// injects faults (SOFTRNIC_IMPAIR), --json writes JSON. Programs are to be seen
// by stat, history and capture when they run with SOFTRNIC_DEBUG=auto.
//
// The exit status is 0, 1 when something could not be done or a check failed,
// and 2 when the command line or a value in it or in the environment was wrong;
// that of mpirun is the first rank's that has failed.
package main
