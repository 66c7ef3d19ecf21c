// Package sdp implements sockets over RDMA: net.Conn, net.Listener and net.PacketConn by the
// Sockets Direct Protocol (InfiniBand Architecture volume 1, annex A4), on any device of package
// verbs.
//
// # Use
//
// A Stack belongs to a device. One side listens on an SDP port at the device's address. SDP ports
// are distinct from TCP ports:
//
//	dev, err := rnic.Open(rnic.Options{Addr: netip.MustParseAddrPort("192.0.2.1:4791")})
//	stack, err := sdp.New(dev, sdp.Options{})
//	l, err := stack.Listen("sdp", ":7471")
//	for {
//		conn, err := l.Accept()
//		go serve(conn)
//	}
//
// The other side dials:
//
//	conn, err := stack.Dial("sdp", "192.0.2.1:7471")
//
// Packages that use a net.Conn, a net.Listener or a dial function work over SDP, among them
// net/http, crypto/tls, net/rpc and gRPC:
//
//	client := http.Client{Transport: &http.Transport{DialContext: stack.DialContext}}
//	err = http.Serve(l, handler)
//
// A *Conn has the methods of a *net.TCPConn: deadlines, CloseRead, CloseWrite, SetLinger,
// SetKeepAlive, io.ReaderFrom and io.WriterTo. It has no file descriptor, and so neither
// SyscallConn nor File.
//
// # Flow control
//
// [Options.FlowControl], or [Dialer.FlowControl] for one connection, selects one of three flow
// control modes. The peer needs no setting.
//
//	NIC     The default. The adapters do it, without waiting for the application.
//	RDMA    The sender tracks the free bytes of the receiver. Data held back leaves
//	        only in a call: a program that stops calling Read, Write or Close leaves
//	        the last bytes unsent.
//	Credit  One buffer per message, as in the standard. It is used with every peer
//	        that does not support the other modes.
//
// # Zero-copy
//
// A Write and a Read of at least Options.ZeroCopy bytes transfer data between the two
// applications' memory without a copy: by an RDMA READ of memory that the writer has offered, or
// by an RDMA WRITE to memory that the reader has offered. Such a Write waits for the reader for
// at most Options.OfferTime; then it copies as much as the buffers accept. When the call returns,
// the memory belongs to the caller again.
//
// # Closing
//
// Close does not block. Written data is still sent, for a minute unless Options.Linger or
// SetLinger set another time. The program must stay alive meanwhile: [Stack.Shutdown] waits
// for it, [Stack.Close] does not.
//
// # Errors
//
// Calls return a *net.OpError with both addresses, which matches with errors.Is:
//
//	net.ErrClosed             the connection is closed locally
//	os.ErrDeadlineExceeded    the deadline has expired; Timeout is true
//	ErrReset                  the connection has ended abnormally; the text has the cause
//	ErrAborted, ErrProtocol   the peer has aborted, or has violated the protocol
//	syscall.ECONNRESET        with ErrReset and ErrAborted
//	syscall.EPIPE             a Write after CloseWrite
//	syscall.ECONNREFUSED      Dial: the peer rejected the connection
//	syscall.ETIMEDOUT         Dial: no reply; Timeout is true
//
// A failed peer is detected when sent data is not acknowledged. A connection that only reads
// depends on the keepalive ([Options.KeepAlive]).
//
// # How data travels
//
//	Write            send.go             Read              receive.go
//	   v                                    ^
//	protocol.Core    internal/protocol   protocol.Core     internal/protocol
//	   | messages of the flow control       | data in order; credits to return
//	   v mode: internal/flow                |
//	postPending      qp.go               handleCompletions qp.go
//	   v                                    ^
//	verbs.QP.PostSend -----------------> verbs.CQ.PollWait
//
// Transfers of at least Options.ZeroCopy bytes branch off in zerocopy.go. A call that waits polls
// the CQ for all calls of the connection (wait.go); outside of calls, events serve it (events.go).
// dial.go and listen.go establish connections with package cm (setup.go), buffers.go enlarges
// their buffers, close.go closes them, and teardown.go releases what they used. Datagrams are
// apart: packet.go, packetlisten.go and, for the addresses of peers, packetpeers.go.
package sdp
