// Package sdp is sockets over RDMA: net.Conn, net.Listener and net.PacketConn by
// the Sockets Direct Protocol (InfiniBand Architecture volume 1, annex A4), on
// any device that implements package verbs.
//
// # Use
//
// A Stack belongs to a device. One side listens on a port of SDP, which has
// nothing to do with the ports of TCP, at the device's address:
//
//	dev, err := rnic.Open(rnic.Options{Addr: netip.MustParseAddrPort("192.0.2.1:4791")})
//	stack, err := sdp.New(dev, nil, sdp.Options{})
//	l, err := stack.Listen("sdp", ":7471")
//	for {
//		conn, err := l.Accept()
//		go serve(conn)
//	}
//
// The other dials:
//
//	conn, err := stack.Dial("sdp", "192.0.2.1:7471")
//
// Whatever takes a net.Conn, a net.Listener or a function that dials runs over
// it, among them net/http, crypto/tls, net/rpc and gRPC:
//
//	client := http.Client{Transport: &http.Transport{DialContext: stack.DialContext}}
//	err = http.Serve(l, handler)
//
// A *Conn does what a *net.TCPConn does: deadlines, CloseRead, CloseWrite, SetLinger,
// SetKeepAlive, io.ReaderFrom and io.WriterTo. There is no file descriptor below, and so no
// SyscallConn and no File.
//
// # Flow control
//
// [Options.FlowControl], or [Dialer.FlowControl] for a connection, chooses among three flow
// controls, of which package flow tells more. The peer needs no setting.
//
//	NIC     the default. The adapters do it; nobody waits for the application
//	RDMA    the sender knows the room at the receiver. What it holds back leaves
//	        only in a call: a program that has something else to do than to call
//	        Read, Write or Close leaves the last of it unsent
//	Credit  a buffer for every message. What the standard has, and what is used
//	        with every peer that knows nothing of the others
//
// # Large pieces
//
// A Write and a Read of Options.ZeroCopy bytes or more move bytes between the two
// applications' memory without a copy: by RDMA READ of memory that the writer
// has offered, or by RDMA WRITE to memory that the reader has. Such a Write
// waits for the reader, at most Options.OfferTime; then it copies what the
// buffers take. Memory is the caller's own again when the call returns.
//
// # Ends
//
// Close returns at once, and what was written is still sent, for a minute unless
// Options.Linger or SetLinger say another time. The program has to live as long:
// [Stack.Drain] waits for that. [Stack.Close] does not.
//
// # Errors
//
// Calls return a *net.OpError with both addresses. In it are, for errors.Is:
//
//	net.ErrClosed             this end has closed
//	os.ErrDeadlineExceeded    the deadline, and Timeout is true
//	ErrReset                  the connection has ended before its time; the text tells why
//	ErrAborted, ErrProtocol   the peer has given up, or does not speak SDP well
//	syscall.ECONNRESET        ErrReset and ErrAborted are it, too
//	syscall.EPIPE             a Write after CloseWrite
//	syscall.ECONNREFUSED      a Dial that nobody wanted
//	syscall.ETIMEDOUT         a Dial that nobody answered; Timeout is true
//
// A peer that is gone without a word is noticed when something is sent that
// nobody acknowledges. Who only reads sends nothing: Options.KeepAlive asks.
package sdp
