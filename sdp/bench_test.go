package sdp_test

import (
	"fmt"
	"io"
	"math"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// pairs are connections with each flow control, and one of TCP.
func pairs(b *testing.B, f func(b *testing.B, x, y net.Conn)) {
	for _, d := range designs {
		b.Run(d.String(), func(b *testing.B) {
			x, y := newEnds(b, rnic.Options{}, sdp.Options{FlowControl: d}).dial(b)
			f(b, x, y)
		})
	}
	b.Run("tcp", func(b *testing.B) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(b, err)
		defer l.Close()
		x, err := net.Dial("tcp", l.Addr().String())
		require.NoError(b, err)
		defer x.Close()
		y, err := l.Accept()
		require.NoError(b, err)
		defer y.Close()
		f(b, x, y)
	})
}

func BenchmarkStream(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			pairs(b, func(b *testing.B, x, y net.Conn) {
				total := math.MaxInt
				done := make(chan error)
				go func() {
					buf := make([]byte, max(size, 64<<10))
					for n := 0; n < total; {
						k, err := y.Read(buf)
						if err != nil {
							done <- err
							return
						}
						n += k
					}
					done <- nil
				}()
				p := make([]byte, size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := x.Write(p); err != nil {
						b.Fatal(err)
					}
				}
				if x, ok := x.(interface{ CloseWrite() error }); ok {
					x.CloseWrite()
				}
				if err := <-done; err != nil && err != io.EOF {
					b.Fatal(err)
				}
			})
		})
	}
}

func BenchmarkPingPong(b *testing.B) {
	pairs(b, func(b *testing.B, x, y net.Conn) {
		go func() {
			buf := make([]byte, 64)
			for {
				if _, err := io.ReadFull(y, buf); err != nil {
					return
				}
				if _, err := y.Write(buf); err != nil {
					return
				}
			}
		}()
		buf := make([]byte, 64)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := x.Write(buf); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(x, buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}
