package shm

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The handshake, over a socket of type SOCK_SEQPACKET with a name in the abstract namespace
// (unix(7)): the producer sends its address and the descriptor of a ring, the consumer answers with
// the descriptor that wakes it. The connection stays open, and its end is that of the peer.
const (
	version      = "softrnic-shm 1 "
	answer       = "softrnic-shm 1"
	handshakeMax = 20 * time.Millisecond // then the packets go to the socket
	requiredSeal = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
)

// socketName returns the name of the socket of an adapter.
func socketName(a netip.AddrPort) *net.UnixAddr {
	return &net.UnixAddr{Name: "@softrnic-shm/" + a.String(), Net: "unixpacket"}
}

// A peer is the other end of one ring.
type peer struct {
	socket *net.UnixConn
	mem    []byte
	wakeFD int         // of the consumer, at the producer; -1 at the consumer
	gone   atomic.Bool // the other end has closed or died
	onGone func()
	closed sync.Once
}

// watchEnd marks the peer as gone when the connection ends.
func (p *peer) watchEnd() {
	var b [1]byte
	p.socket.Read(b[:]) //nolint:errcheck // nothing is sent any more: it returns at the end
	p.gone.Store(true)
	if p.onGone != nil {
		p.onGone()
	}
}

// wakeConsumer writes the eventfd of the consumer.
func (p *peer) wakeConsumer() {
	one := [8]byte{1}
	unix.Write(p.wakeFD, one[:]) //nolint:errcheck // a full counter has woken it
}

// closeRing releases the memory and the connection. No one may use the ring any more.
func (p *peer) closeRing() {
	p.closed.Do(func() {
		p.socket.Close()
		unix.Munmap(p.mem) //nolint:errcheck // it is mapped
		if p.wakeFD >= 0 {
			unix.Close(p.wakeFD)
		}
	})
}

// checkUser returns an error unless the other end of a connection has the user of this process.
func checkUser(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return e
	}
	if err == nil && int(cred.Uid) != os.Geteuid() {
		err = fmt.Errorf("shm: %v: the peer has user %d, this process %d", c.RemoteAddr(), cred.Uid, os.Geteuid())
	}
	return err
}

// dialPeer asks the adapter at dst for a ring. It returns the producer's end and the memory.
func dialPeer(local, dst netip.AddrPort) (_ *peer, mem []byte, err error) {
	d := net.Dialer{Timeout: handshakeMax}
	dialed, err := d.Dial("unixpacket", socketName(dst).Name)
	if err != nil {
		return nil, nil, err
	}
	c := dialed.(*net.UnixConn)
	p := &peer{socket: c, wakeFD: -1}
	defer func() {
		if err != nil {
			p.closeRing()
		}
	}()
	if err := checkUser(c); err != nil {
		return nil, nil, err
	}
	file, err := newMemory()
	if err != nil {
		return nil, nil, err
	}
	defer unix.Close(file)
	if p.mem, err = mapMemory(file); err != nil {
		return nil, nil, err
	}
	if err := c.SetDeadline(time.Now().Add(handshakeMax)); err != nil {
		return nil, nil, err
	}
	if _, _, err := c.WriteMsgUnix([]byte(version+local.String()), unix.UnixRights(file), nil); err != nil {
		return nil, nil, err
	}
	text, fd, err := receiveMessage(c)
	if err != nil {
		return nil, nil, err
	}
	p.wakeFD = fd
	if text != answer {
		return nil, nil, fmt.Errorf("shm: %v: answer %q, want %q", dst, text, answer)
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return nil, nil, err
	}
	go p.watchEnd()
	return p, p.mem, nil
}

// receiveMessage reads a message with one descriptor.
func receiveMessage(c *net.UnixConn) (text string, fd int, err error) {
	var data [256]byte
	control := make([]byte, unix.CmsgSpace(4*8))
	n, nc, _, _, err := c.ReadMsgUnix(data[:], control)
	if err != nil {
		return "", -1, err
	}
	var fds []int
	messages, err := unix.ParseSocketControlMessage(control[:nc])
	for i := range messages {
		if got, e := unix.ParseUnixRights(&messages[i]); e == nil {
			fds = append(fds, got...)
		}
	}
	if err != nil || len(fds) != 1 {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return "", -1, errors.Join(err, fmt.Errorf("shm: handshake message with %d descriptors, want 1", len(fds)))
	}
	unix.CloseOnExec(fds[0])
	return string(data[:n]), fds[0], nil
}

// newMemory returns the descriptor of the memory of a ring, whose size nobody can change.
func newMemory() (int, error) {
	fd, err := unix.MemfdCreate("softrnic-shm", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	if err = unix.Ftruncate(fd, controlSize+ringSize); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, requiredSeal)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("shm: memory of a ring: %w", err)
	}
	return fd, nil
}

// mapMemory maps the memory of a ring. It refuses memory that could shrink: an access behind its end
// would be a SIGBUS.
func mapMemory(fd int) ([]byte, error) {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&requiredSeal != requiredSeal {
		return nil, fmt.Errorf("shm: memory of a ring: seals 0x%x, want 0x%x (%w)", seals, requiredSeal, err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Size != controlSize+ringSize {
		return nil, fmt.Errorf("shm: memory of a ring: %d bytes, want %d (%w)", stat.Size, controlSize+ringSize, err)
	}
	return unix.Mmap(fd, 0, controlSize+ringSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// A listener answers the handshakes of producers.
type listener struct {
	socket *net.UnixListener
	wakeFD int
}

func listenAt(local netip.AddrPort, wakeFD int) (*listener, error) {
	l, err := net.ListenUnix("unixpacket", socketName(local))
	if err != nil {
		return nil, err
	}
	return &listener{socket: l, wakeFD: wakeFD}, nil
}

func (l *listener) closeSocket() { l.socket.Close() }

// serveHandshakes answers until the listener is closed. add gets each ring.
func (l *listener) serveHandshakes(add func(p *peer, src netip.AddrPort, mem []byte) error) {
	for {
		c, err := l.socket.AcceptUnix()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			time.Sleep(handshakeMax) // producers use the socket meanwhile
			continue
		}
		if err != nil {
			return
		}
		go l.answerProducer(c, add)
	}
}

// answerProducer does one handshake. A peer that does not keep to it is disconnected.
func (l *listener) answerProducer(c *net.UnixConn, add func(p *peer, src netip.AddrPort, mem []byte) error) {
	p := &peer{socket: c, wakeFD: -1}
	if err := l.shakeHands(p, add); err != nil {
		p.closeRing()
		return
	}
	p.watchEnd()
}

func (l *listener) shakeHands(p *peer, add func(p *peer, src netip.AddrPort, mem []byte) error) error {
	if err := checkUser(p.socket); err != nil {
		return err
	}
	if err := p.socket.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	text, fd, err := receiveMessage(p.socket)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if len(text) < len(version) || text[:len(version)] != version {
		return fmt.Errorf("shm: handshake %q, want %q and an address", text, version)
	}
	src, err := netip.ParseAddrPort(text[len(version):])
	if err != nil {
		return err
	}
	if p.mem, err = mapMemory(fd); err != nil {
		return err
	}
	if err := add(p, src, p.mem); err != nil {
		return err
	}
	if _, _, err := p.socket.WriteMsgUnix([]byte(answer), unix.UnixRights(l.wakeFD), nil); err != nil {
		p.gone.Store(true) // the reader removes the ring
		return nil
	}
	return p.socket.SetDeadline(time.Time{})
}
