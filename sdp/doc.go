// Package sdp is sockets over RDMA: net.Conn and net.Listener by the Sockets
// Direct Protocol.
package sdp
