package verbsbench

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/netns"
	"github.com/softrnic/softrnic/rnic"
)

// OpenTokenBucket opens two devices in network namespaces of their own, with a cable between them that
// has a rate and a buffer by the kernel's token bucket filter, and connects the queue pairs and the
// stream of TCP. It needs root, iproute2 and a kernel with the filter.
func OpenTokenBucket(c TokenBucketConfig) (b *Bottleneck, err error) {
	b = &Bottleneck{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	var spaces [2]*netns.Namespace
	for i := range spaces {
		if spaces[i], err = netns.New(); err != nil {
			return b, err
		}
		b.closers = append(b.closers, spaces[i].Close)
	}
	if _, _, err = netns.ConnectVeth(spaces[0], spaces[1], "cable0"); err != nil {
		return b, err
	}
	var addrs [2]netip.Addr
	for i, n := range spaces {
		if err = n.IP(fmt.Sprintf("link set cable0 mtu %d", c.MTU)); err != nil {
			return b, err
		}
		if addrs[i], err = n.Up("cable0", fmt.Sprintf("10.9.0.%d/24", i+1)); err != nil {
			return b, err
		}
		if err = n.IP(fmt.Sprintf("neigh replace 10.9.0.%d lladdr 02:00:00:00:00:0%x dev cable0", 2-i, 0xb-i)); err != nil {
			return b, err
		}
	}
	if _, err = spaces[0].Command("tc", fmt.Sprintf("qdisc add dev cable0 root tbf rate %s burst 20kb limit %d", c.Rate, c.Buffer)); err != nil {
		return b, err
	}
	for i, dev := range []**rnic.Device{&b.from, &b.to} {
		err = spaces[i].Do(func() (err error) {
			*dev, err = rnic.Open(rnic.Options{Addr: netip.AddrPortFrom(addrs[i], 4791), NoSharedMemory: true})
			return err
		})
		if err != nil {
			return b, err
		}
	}
	if err = b.connectFlows(c.Flows); err != nil {
		return b, err
	}
	if c.TCP != "" {
		b.tcp, err = startTCP(spaces[0], spaces[1], netip.AddrPortFrom(addrs[1], 5001), c.TCP)
	}
	return b, err
}

// A tcpStream is a stream of TCP that sends until it is closed.
type tcpStream struct {
	conn     net.Conn
	listener net.Listener
	received atomic.Int64 // bytes
}

// startTCP starts a stream to addr with that congestion control.
func startTCP(from, to *netns.Namespace, addr netip.AddrPort, algorithm string) (s *tcpStream, err error) {
	if known, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control"); !bytes.Contains(known, []byte(algorithm)) {
		return nil, fmt.Errorf("the kernel has no TCP %s", algorithm)
	}
	s = &tcpStream{}
	err = to.Do(func() (err error) {
		s.listener, err = net.Listen("tcp", addr.String())
		return err
	})
	if err != nil {
		return nil, err
	}
	go s.receive()
	err = from.Do(func() (err error) {
		s.conn, err = net.Dial("tcp", addr.String())
		return err
	})
	if err == nil {
		err = setCongestion(s.conn.(*net.TCPConn), algorithm)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	go func() {
		for buf := make([]byte, 64<<10); err == nil; {
			_, err = s.conn.Write(buf)
		}
	}()
	return s, nil
}

// setCongestion sets the congestion control of c.
func setCongestion(c *net.TCPConn, algorithm string) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, algorithm)
	})
	return errors.Join(err, failed)
}

// receive counts the bytes of the first connection until it ends.
func (s *tcpStream) receive() {
	c, err := s.listener.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	for buf := make([]byte, 256<<10); err == nil; {
		var n int
		n, err = c.Read(buf)
		s.received.Add(int64(n))
	}
}

// Close ends the stream.
func (s *tcpStream) Close() error {
	err := s.listener.Close()
	if s.conn != nil {
		err = errors.Join(err, s.conn.Close())
	}
	return err
}
