package link

import (
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/softrnic/softrnic/wire"
)

var benchModes = []struct {
	name string
	o    Options
}{
	{"all", Options{}},
	{"nogso,nogro", Options{NoGSO: true, NoGRO: true}},
	{"nogso,nogro,nommsg", Options{NoGSO: true, NoGRO: true, NoMMsg: true}},
	{"portable", Options{Portable: true}},
}

// BenchmarkThroughput transfers packets of 4096 bytes of payload, 16 of headers and the ICRC from
// one goroutine to another: payload copied in, sealed, sent, received, checked, copied out. The
// sender keeps at most 1 MiB in flight.
func BenchmarkThroughput(b *testing.B) {
	for _, mode := range benchModes {
		b.Run(mode.name, func(b *testing.B) { throughput(b, mode.o, 16, 4096) })
	}
}

func throughput(b *testing.B, o Options, header, payload int) {
	size := header + payload + wire.ICRCLen
	o.Addr = netip.MustParseAddrPort("127.0.0.1:0")
	tx, rx := open(b, o), open(b, o)
	var received atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		r, memory := NewDatagrams(16), make([]byte, 4<<20)
		sealer := wire.NewICRC(tx.LocalAddr(), rx.LocalAddr())
		for off := 0; received.Load() < int64(b.N)*int64(size); {
			n, err := rx.ReadBatch(r)
			if err != nil {
				return
			}
			if n == 0 && o.Portable {
				rx.Wait(-1) // spinning would keep its goroutine from reading
			}
			for i := range n {
				d := &r.Msgs()[i]
				for k := range d.Count() {
					pkt := d.Packet(k)
					if res, _ := sealer.Check(pkt, uint16(k)); res == wire.ICRCBad {
						panic("bad ICRC")
					}
					copy(memory[off:], pkt[header:header+payload])
					if off += payload; off+payload > len(memory) {
						off = 0
					}
				}
				received.Add(int64(len(d.Buf)))
			}
		}
	}()
	batch, to, memory := NewBatch(64<<10), pathTo(rx), make([]byte, 4<<20)
	b.SetBytes(int64(payload))
	b.ReportAllocs()
	b.ResetTimer()
	sent := 0
	for off := 0; sent < b.N; {
		batch.Reset()
		for sent < b.N {
			pkt := batch.Next(to, size)
			if pkt == nil {
				break
			}
			copy(pkt[header:], memory[off:off+payload])
			if off += payload; off+payload > len(memory) {
				off = 0
			}
			sent++
		}
		if err := tx.WriteBatch(batch); err != nil {
			b.Fatal(err)
		}
		for int64(sent*size)-received.Load() > 1<<20 {
			if o.Portable {
				runtime.Gosched()
			}
		}
	}
	<-done
	b.StopTimer()
	if s := StatsOf(rx); s.ReceiveOverflow > 0 {
		b.Fatalf("%d datagrams lost", s.ReceiveOverflow)
	}
}

// BenchmarkPingPong measures half a round trip of a 24-byte packet between two goroutines that
// spin.
func BenchmarkPingPong(b *testing.B) {
	for _, mode := range benchModes[:3] {
		b.Run(mode.name, func(b *testing.B) { pingPong(b, mode.o) })
	}
}

func pingPong(b *testing.B, o Options) {
	o.Addr = netip.MustParseAddrPort("127.0.0.1:0")
	x, y := open(b, o), open(b, o)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		batch, r, to := NewBatch(64<<10), NewDatagrams(16), pathTo(x)
		for !stop.Load() {
			if n, _ := y.ReadBatch(r); n > 0 {
				batch.Reset()
				batch.Next(to, 24)
				y.WriteBatch(batch)
			}
		}
	}()
	batch, r, to := NewBatch(64<<10), NewDatagrams(16), pathTo(y)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		batch.Reset()
		batch.Next(to, 24)
		x.WriteBatch(batch)
		for n := 0; n == 0; {
			n, _ = x.ReadBatch(r)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2, "ns/half-rtt")
	stop.Store(true)
	<-done
}
