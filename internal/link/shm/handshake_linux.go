package shm

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The handshake, over a socket of type SOCK_SEQPACKET with a name in the abstract namespace
// (unix(7)): the producer sends the number of a shard, its address, the number of packets that it has sent
// there through the socket if the adapter has the number of shards that follows, and the descriptor of a
// ring. The consumer answers with the number of its shards, and the descriptor that wakes that shard. The
// connection stays open, and its end is that of the peer.
const (
	version      = "softrnic-shm 3 "
	maxShards    = 256
	handshakeMax = 20 * time.Millisecond // then the packets go to the socket
	requiredSeal = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
)

// socketName returns the name of the socket of an adapter. The slot is -1 for an address of its own.
func socketName(a netip.AddrPort, slot int) *net.UnixAddr {
	name := "@softrnic-shm/" + a.String()
	if slot >= 0 {
		name += "/" + strconv.Itoa(slot)
	}
	return &net.UnixAddr{Name: name, Net: "unixpacket"}
}

// isNoName reports whether an error of dialPeer means that there is no such socket.
func isNoName(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

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
		unmapAll([][]byte{p.mem})
		if p.wakeFD >= 0 {
			unix.Close(p.wakeFD)
		}
	})
}

// detachMemory returns the memory, which closeRing then leaves alone.
func (p *peer) detachMemory() []byte {
	mem := p.mem
	p.mem = nil
	return mem
}

// unmapAll releases the memory of rings.
func unmapAll(list [][]byte) {
	for _, mem := range list {
		if mem != nil {
			unix.Munmap(mem) //nolint:errcheck // it is mapped
		}
	}
}

// backMemory makes the system back memory of a ring, and reports whether there is enough of it: an
// access without would be a SIGBUS. Systems before Linux 5.14 back it on use.
func backMemory(mem []byte) bool {
	for {
		switch unix.Madvise(mem, unix.MADV_POPULATE_WRITE) {
		case nil, unix.EINVAL:
			return true
		case unix.EINTR: // the Go runtime interrupts threads by signals
		default:
			return false
		}
	}
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

// dialPeer asks the adapter at dst for a ring. The index is that of one of its shards or, by slot, that
// of an adapter at a shared address. The number of earlier packets is right for an adapter with assumed
// shards. It returns the producer's end and the number of shards.
func dialPeer(local, dst netip.AddrPort, index int, bySlot bool, earlier int64, assumed int) (_ *peer, shards int, err error) {
	slot := -1
	if bySlot {
		slot, index = index, 0
	}
	d := net.Dialer{Timeout: handshakeMax}
	dialed, err := d.Dial("unixpacket", socketName(dst, slot).Name)
	if err != nil {
		return nil, 0, err
	}
	c := dialed.(*net.UnixConn)
	p := &peer{socket: c, wakeFD: -1}
	defer func() {
		if err != nil {
			p.closeRing()
		}
	}()
	if err := checkUser(c); err != nil {
		return nil, 0, err
	}
	file, err := newMemory()
	if err != nil {
		return nil, 0, err
	}
	defer unix.Close(file)
	if p.mem, err = mapMemory(file); err != nil {
		return nil, 0, err
	}
	if !backMemory(p.mem[:controlSize+minLimit]) {
		return nil, 0, fmt.Errorf("shm: memory of a ring: no memory for %d bytes", controlSize+minLimit)
	}
	if err := c.SetDeadline(time.Now().Add(handshakeMax)); err != nil {
		return nil, 0, err
	}
	if _, _, err := c.WriteMsgUnix(fmt.Appendf(nil, "%s%d %v %d %d", version, index, local, earlier, assumed), unix.UnixRights(file), nil); err != nil {
		return nil, 0, err
	}
	text, fd, err := receiveMessage(c)
	if err != nil {
		return nil, 0, err
	}
	p.wakeFD = fd
	answer, ok := strings.CutPrefix(text, version)
	if shards, err = strconv.Atoi(answer); !ok || err != nil || shards < 1 || shards > maxShards {
		return nil, 0, fmt.Errorf("shm: %v: answer %q, want %q and a number of shards", dst, text, version)
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return nil, 0, err
	}
	go p.watchEnd()
	return p, shards, nil
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
	conns  []*conn // by shard
}

func listenAt(local netip.AddrPort, slot int, conns []*conn) (*listener, error) {
	l, err := net.ListenUnix("unixpacket", socketName(local, slot))
	if err != nil {
		return nil, err
	}
	return &listener{socket: l, conns: conns}, nil
}

func (l *listener) closeSocket() { l.socket.Close() }

// serveHandshakes answers until the listener is closed.
func (l *listener) serveHandshakes() {
	for {
		c, err := l.socket.AcceptUnix()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			time.Sleep(handshakeMax) // producers use the socket meanwhile
			continue
		}
		if err != nil {
			return
		}
		go l.answerProducer(c)
	}
}

// answerProducer does one handshake. A peer that does not keep to it is disconnected.
func (l *listener) answerProducer(c *net.UnixConn) {
	p := &peer{socket: c, wakeFD: -1}
	if err := l.shakeHands(p); err != nil {
		p.closeRing()
		return
	}
	p.watchEnd()
}

func (l *listener) shakeHands(p *peer) error {
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
	r, err := l.parseRequest(text)
	if err != nil {
		return err
	}
	if p.mem, err = mapMemory(fd); err != nil {
		return err
	}
	if err := r.conn.addIncoming(p, r.src, r.earlier); err != nil {
		return err
	}
	if _, _, err := p.socket.WriteMsgUnix(fmt.Appendf(nil, "%s%d", version, len(l.conns)), unix.UnixRights(r.conn.wakeFD), nil); err != nil {
		return nil //nolint:nilerr // watchEnd finds the end of the connection, and the reader removes the ring
	}
	_ = p.socket.SetDeadline(time.Time{}) // if it fails, watchEnd ends
	return nil
}

// A request is the message of a producer.
type request struct {
	conn    *conn // that it has named
	src     netip.AddrPort
	earlier int64 // packets through the socket, or countUnknown
}

func (l *listener) parseRequest(text string) (r request, err error) {
	fields := strings.Fields(strings.TrimPrefix(text, version))
	if !strings.HasPrefix(text, version) || len(fields) != 4 {
		return r, fmt.Errorf("shm: handshake %q, want %q and 4 fields", text, version)
	}
	shard, err := strconv.Atoi(fields[0])
	if err != nil || shard < 0 || shard >= len(l.conns) {
		return r, fmt.Errorf("shm: handshake %q: want a shard below %d", text, len(l.conns))
	}
	r.conn = l.conns[shard]
	if r.src, err = netip.ParseAddrPort(fields[1]); err != nil {
		return r, err
	}
	if r.earlier, err = strconv.ParseInt(fields[2], 10, 64); err != nil {
		return r, err
	}
	shards, err := strconv.Atoi(fields[3])
	if r.earlier < 0 || r.earlier > 0 && shards != len(l.conns) {
		r.earlier = countUnknown
	}
	return r, err
}
