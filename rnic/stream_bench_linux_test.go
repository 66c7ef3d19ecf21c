package rnic

import (
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/verbs"
)

// The benchmarks compare iWARP with bare TCP sockets, in one process.

func BenchmarkStreamWrite(b *testing.B) {
	const n, window = 1 << 20, 4
	for name, noCRC := range map[string]bool{"crc": false, "nocrc": true} {
		b.Run(name, func(b *testing.B) {
			from, to := pair(b, Options{Wire: IWARP, NoCRC: noCRC})
			b.SetBytes(n)
			wr := verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{from.mr.SGE(0, n)}, RemoteAddr: to.mr.Addr(), RKey: to.mr.RKey()}
			open := 0
			b.ResetTimer()
			for range b.N {
				from.post(b, wr)
				if open++; open == window {
					from.poll1(b)
					open--
				}
			}
			for ; open > 0; open-- {
				from.poll1(b)
			}
			read := wr // its response is behind the writes
			read.Opcode, read.SGList = verbs.WRRDMARead, []verbs.SGE{from.mr.SGE(0, 8)}
			from.post(b, read)
			from.poll1(b)
		})
	}
}

// tcpPair returns the two ends of a TCP connection.
func tcpPair(b *testing.B) (x, y *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(b, err)
	s, err := l.Accept()
	require.NoError(b, err)
	b.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

func BenchmarkTCPWrite(b *testing.B) {
	const n = 1 << 20
	x, y := tcpPair(b)
	from, to := aligned(n), aligned(n)
	b.SetBytes(n)
	b.ResetTimer()
	done := make(chan error)
	go func() {
		for range b.N {
			if _, err := io.ReadFull(y, to); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range b.N {
		_, err := x.Write(from)
		require.NoError(b, err)
	}
	require.NoError(b, <-done)
}

func BenchmarkStreamPingPong(b *testing.B) {
	x, y := pair(b, Options{Wire: IWARP})
	side := func(e *end, first bool) {
		var wc [4]verbs.WC
		send := []verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{e.mr.SGE(0, 8)}}}
		receives := []verbs.RecvWR{{SGList: []verbs.SGE{e.mr.SGE(64, 8)}}}
		for range b.N {
			if first {
				_, _ = e.qp.PostSend(send)
			}
			for got := false; !got; {
				n, _ := e.cq.Poll(wc[:])
				for i := range n {
					got = got || wc[i].Opcode == verbs.WCRecv
				}
			}
			_, _ = e.qp.PostRecv(receives)
			if !first {
				_, _ = e.qp.PostSend(send)
			}
		}
	}
	x.recv(b, 0, 64, 8)
	y.recv(b, 0, 64, 8)
	timeHalves(b, x, y, side)
}

func BenchmarkTCPPingPong(b *testing.B) {
	x, y := tcpPair(b)
	side := func(c *net.TCPConn, first bool) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		raw, err := c.SyscallConn()
		if err != nil {
			panic(err)
		}
		raw.Control(func(fd uintptr) {
			buf := make([]byte, 8)
			for range b.N {
				if first {
					unix.Sendto(int(fd), buf, 0, nil)
				}
				for {
					if n, _, _ := unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT); n > 0 {
						break
					}
				}
				if !first {
					unix.Sendto(int(fd), buf, 0, nil)
				}
			}
		})
	}
	timeHalves(b, x, y, side)
}

// timeHalves runs both sides of a ping-pong, the first of which begins, and reports half a round trip.
func timeHalves[T any](b *testing.B, x, y T, side func(at T, first bool)) {
	b.ResetTimer()
	done := make(chan struct{})
	go func() {
		side(y, false)
		close(done)
	}()
	side(x, true)
	<-done
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2, "ns/half")
}
