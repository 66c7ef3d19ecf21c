//go:build linux

package lab

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"golang.org/x/sys/unix"
)

// A Capture records all packets of the data link at the host side.
type Capture struct {
	fd     int
	result chan captureResult // capacity 1; sent when the capture ends
	mark   []byte             // payload of the datagram that ends the capture
}

type captureResult struct {
	frames []Frame
	err    error
}

// A Frame is a captured packet from the Ethernet header on.
type Frame struct {
	Time time.Time
	Data []byte
}

const (
	captureBuffer = 64 << 20 // bytes
	capturePort   = 9        // discard (RFC 863): destination of the datagram that ends a capture
)

// StartCapture starts a capture of the data link.
func StartCapture() (*Capture, error) {
	device, err := net.InterfaceByName(dataTap)
	if err != nil {
		return nil, err
	}
	protocol := uint16(unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8) // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(protocol))
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	c := &Capture{fd: fd, result: make(chan captureResult, 1), mark: []byte("softrnic lab: end of capture " + rand.Text())}
	err = errors.Join(
		os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer)),
		os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: device.Index})))
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	go c.readFrames()
	return c, nil
}

// readFrames records packets until the one that ends the capture.
func (c *Capture) readFrames() {
	var r captureResult
	buf := make([]byte, 1<<16)
	for {
		n, _, err := unix.Recvfrom(c.fd, buf, 0)
		if err != nil {
			r.err = os.NewSyscallError("recvfrom", err)
			break
		}
		if bytes.Contains(buf[:n], c.mark) {
			break
		}
		r.frames = append(r.frames, Frame{time.Now(), bytes.Clone(buf[:n])})
	}
	if stats, err := unix.GetsockoptTpacketStats(c.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err != nil {
		r.err = errors.Join(r.err, os.NewSyscallError("getsockopt", err))
	} else if stats.Drops > 0 {
		r.err = errors.Join(r.err, fmt.Errorf("the capture lacks %d packets", stats.Drops))
	}
	unix.Close(c.fd)
	c.result <- r
}

// Stop ends the capture and returns all frames up to now.
func (c *Capture) Stop() ([]Frame, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(GuestIPv4, capturePort)))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	for {
		conn.Write(c.mark) // an error reports the ICMP reply to the previous datagram, which is expected
		select {
		case r := <-c.result:
			return r.frames, r.err
		case <-time.After(100 * time.Millisecond): // the first datagram may be lost during address resolution
		}
	}
}

// WriteFrames writes frames to a pcapng file for tshark and Wireshark.
func WriteFrames(path string, frames []Frame) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	write := func() error {
		w, err := pcapgo.NewNgWriter(f, layers.LinkTypeEthernet)
		if err != nil {
			return err
		}
		for _, frame := range frames {
			info := gopacket.CaptureInfo{Timestamp: frame.Time, CaptureLength: len(frame.Data), Length: len(frame.Data)}
			if err := w.WritePacket(info, frame.Data); err != nil {
				return err
			}
		}
		return w.Flush()
	}
	return errors.Join(write(), f.Close())
}
