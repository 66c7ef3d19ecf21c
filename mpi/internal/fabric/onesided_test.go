package fabric_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/engine"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/fabric"
	"github.com/softrnic/softrnic/mpi/internal/fabric/rdma"
	"github.com/softrnic/softrnic/mpi/internal/fabric/tcp"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// pair is two ranks, of which rank 1 polls the network all the time.
type pair struct {
	e      [2]*engine.Engine
	vanish [2]func()
}

// fabrics runs f on the fabrics that have one-sided transfers.
func fabrics(t *testing.T, f func(t *testing.T, p *pair)) {
	for _, name := range append(rdma.FlowNames(), "tcp", "tcp by goroutines") {
		t.Run(name, func(t *testing.T) {
			if name == "tcp by goroutines" {
				t.Setenv("SOFTRNIC_LINK", "portable")
			}
			p := &pair{}
			var both sync.WaitGroup
			for i, m := range pmi.NewLocal(2) {
				p.vanish[i] = func() {}
				open := func(h fabric.Host) (fabric.Fabric, error) { return tcp.New(h, m, tcp.Options{}) }
				if flow := slices.Index(rdma.FlowNames(), name); flow >= 0 {
					dev, err := rnic.Open(rnic.Options{})
					require.NoError(t, err)
					p.vanish[i] = func() { _ = dev.Close() }
					t.Cleanup(p.vanish[i])
					open = func(h fabric.Host) (fabric.Fabric, error) {
						return rdma.New(dev, h, m, rdma.Options{Flow: rdma.Flow(flow), Credits: 8, Connect: verbs.ConnectOptions{AckTimeout: verbs.AckTimeout(14)}})
					}
				}
				both.Go(func() {
					var err error
					p.e[i], err = engine.New(i, 2, open)
					if err == nil {
						err = m.Fence(context.Background())
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
			ctx, cancel := context.WithCancel(context.Background())
			both.Go(func() { p.e[1].PollWhenIdle(ctx, engine.IdleInterval) })
			t.Cleanup(func() {
				cancel()
				both.Wait()
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				for _, e := range p.e {
					both.Go(func() { _ = e.Close(ctx) })
				}
				both.Wait()
			})
			f(t, p)
		})
	}
}

// register registers memory of rank 1 for rank 0.
func (p *pair) register(t *testing.T, b []byte) (key envelope.Key, hide func()) {
	p.e[1].Do(func(*protocol.Core) {
		k, x, err := p.e[1].Fabric().RegisterMemory(0, b, true)
		require.NoError(t, err)
		key, hide = k, func() { p.e[1].Do(func(*protocol.Core) { p.e[1].Fabric().DeregisterMemory(x) }) }
	})
	return key, hide
}

// do runs begin at rank 0.
func (p *pair) do(begin func(*protocol.Core)) { p.e[0].Do(begin) }

// wait waits for a request at rank 0.
func (p *pair) wait(t *testing.T, r *protocol.Request) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, p.e[0].Wait(ctx, r))
}

func offsetKey(key envelope.Key, off int) envelope.Key {
	key.Addr += uint64(off)
	return key
}

// TestPutGet checks that memory is written and read, for several lengths, and that a message sent
// after a Put arrives behind it.
func TestPutGet(t *testing.T) {
	fabrics(t, func(t *testing.T, p *pair) {
		mem := make([]byte, 3<<20)
		key, hide := p.register(t, mem)
		defer hide()
		seen := make(chan byte, 1)
		p.e[1].Do(func(c *protocol.Core) {
			c.Handler = func(_ int, h *envelope.Header, _ []byte) error {
				seen <- mem[h.ID]
				return nil
			}
		})
		for i, n := range []int{1, 8, 100, 256, 257, 5000, 8 << 10, 70_000, 2<<20 + 3} {
			b, got := make([]byte, n), make([]byte, n)
			for j := range b {
				b[j] = byte(j*7 + i + 1)
			}
			off := 11*i + 5
			put := &protocol.Request{Dest: 1, Buf: b}
			p.do(func(c *protocol.Core) {
				c.Put(put, offsetKey(key, off))
				require.NoError(t, c.SendActive(1, envelope.Header{ID: uint64(off + n - 1)}, nil))
			})
			p.wait(t, put)
			require.NoError(t, put.Err)
			require.Equal(t, b[n-1], <-seen)
			get := &protocol.Request{Dest: 1, Buf: got}
			p.do(func(c *protocol.Core) { c.Get(get, offsetKey(key, off)) })
			p.wait(t, get)
			require.NoError(t, get.Err)
			require.True(t, bytes.Equal(b, got), "%d bytes", n)
		}
	})
}

// TestManyTransfers starts many transfers and waits for the last one only.
func TestManyTransfers(t *testing.T) {
	fabrics(t, func(t *testing.T, p *pair) {
		const n = 600
		mem := make([]byte, 8*n+8)
		key, hide := p.register(t, mem)
		defer hide()
		reqs := make([]*protocol.Request, n)
		adds := make([]*protocol.Request, n)
		p.do(func(c *protocol.Core) {
			for i := range reqs {
				reqs[i] = &protocol.Request{Dest: 1, Buf: binary.LittleEndian.AppendUint64(make([]byte, 0, 8), uint64(i))}
				adds[i] = &protocol.Request{Dest: 1, Buf: make([]byte, 8)}
				c.Put(reqs[i], offsetKey(key, 8*i+8))
				c.Atomic(adds[i], key, protocol.Atomic{Operand: 3})
			}
		})
		for i := range reqs {
			p.wait(t, reqs[i])
			p.wait(t, adds[i])
			require.NoError(t, reqs[i].Err)
			require.NoError(t, adds[i].Err)
			require.EqualValues(t, 3*i, binary.NativeEndian.Uint64(adds[i].Buf))
		}
		swap := func(compare, new uint64) uint64 {
			r := &protocol.Request{Dest: 1, Buf: make([]byte, 8)}
			p.do(func(c *protocol.Core) { c.Atomic(r, key, protocol.Atomic{Swap: true, Operand: compare, New: new}) })
			p.wait(t, r)
			require.NoError(t, r.Err)
			return binary.NativeEndian.Uint64(r.Buf)
		}
		require.EqualValues(t, 3*n, swap(1, 5))
		require.EqualValues(t, 3*n, swap(3*n, 5))
		require.EqualValues(t, 5, swap(5, 1))
		got := make([]byte, 8*n)
		get := &protocol.Request{Dest: 1, Buf: got}
		p.do(func(c *protocol.Core) { c.Get(get, offsetKey(key, 8)) })
		p.wait(t, get)
		require.NoError(t, get.Err)
		for i := range n {
			require.EqualValues(t, i, binary.LittleEndian.Uint64(got[8*i:]))
		}
	})
}

// TestWrongKeys checks that a rank that uses an unknown key is disconnected, and that all its
// requests fail.
func TestWrongKeys(t *testing.T) {
	for name, spoil := range map[string]func(key envelope.Key, hide func()) envelope.Key{
		"key":      func(key envelope.Key, _ func()) envelope.Key { key.RKey ^= 0x5a5a00; return key },
		"end":      func(key envelope.Key, _ func()) envelope.Key { return offsetKey(key, 1<<30) },
		"begin":    func(key envelope.Key, _ func()) envelope.Key { return offsetKey(key, -1<<30) },
		"overflow": func(key envelope.Key, _ func()) envelope.Key { key.Addr = 1<<64 - 8; return key },
	} {
		t.Run(name, func(t *testing.T) {
			fabrics(t, func(t *testing.T, p *pair) {
				mem := make([]byte, 4096)
				key, hide := p.register(t, mem)
				defer hide()
				var reqs []*protocol.Request
				bad := spoil(key, hide)
				which := rand.IntN(3)
				p.do(func(c *protocol.Core) {
					for i := range 40 {
						r := &protocol.Request{Dest: 1, Buf: bytes.Repeat([]byte{9}, 8)}
						reqs = append(reqs, r)
						k := key
						if i == 20 {
							k = bad
						}
						switch (i + which) % 3 {
						case 0:
							c.Put(r, k)
						case 1:
							c.Get(r, k)
						default:
							c.Atomic(r, k, protocol.Atomic{Operand: 1})
						}
					}
				})
				for i, r := range reqs {
					p.wait(t, r)
					if i >= 20 {
						require.ErrorIs(t, r.Err, protocol.ErrLost, "%d", i)
					}
				}
			})
		})
	}
}

// TestTransfersOfLostRank checks that requests to a failed rank complete.
func TestTransfersOfLostRank(t *testing.T) {
	fabrics(t, func(t *testing.T, p *pair) {
		key, hide := p.register(t, make([]byte, 4096))
		defer hide()
		first := &protocol.Request{Dest: 1, Buf: make([]byte, 8)}
		p.do(func(c *protocol.Core) { c.Put(first, key) })
		p.wait(t, first)
		var reqs []*protocol.Request
		p.do(func(c *protocol.Core) {
			for range 200 {
				r := &protocol.Request{Dest: 1, Buf: make([]byte, 2000)}
				reqs = append(reqs, r)
				c.Get(r, key)
			}
			p.e[0].Fabric().Flush()
			for range 10 {
				r := &protocol.Request{Dest: 1, Buf: make([]byte, 8)}
				reqs = append(reqs, r)
				c.Put(r, key)
			}
		})
		p.vanish[1]()
		_ = p.e[1].Close(context.Background())
		for _, r := range reqs {
			p.wait(t, r)
			if r.Err != nil {
				require.ErrorIs(t, r.Err, protocol.ErrLost)
			}
		}
		last := &protocol.Request{Dest: 1, Buf: make([]byte, 8)}
		require.Eventually(t, func() bool {
			*last = protocol.Request{Dest: 1, Buf: make([]byte, 8)}
			p.do(func(c *protocol.Core) { c.Put(last, key) })
			p.wait(t, last)
			return last.Err != nil
		}, time.Minute, time.Millisecond)
		require.ErrorIs(t, last.Err, protocol.ErrLost)
	})
}

// TestNotifications checks that notifications are delivered in order, after their data, and with any
// number in flight. A net without them returns an error.
func TestNotifications(t *testing.T) {
	fabrics(t, func(t *testing.T, p *pair) {
		const n = 300 // more than the credits and the send queue allow
		sizes := []int{1, 256, 257, 5000, 20_000}
		mem := make([]byte, n*16+20_000)
		key, hide := p.register(t, mem)
		defer hide()
		all := make(chan uint32, n)
		p.e[1].Do(func(c *protocol.Core) {
			c.OnNotify = func(from int, notice uint32) error {
				if from != 0 || notice >= n {
					return errors.New("not mine")
				}
				if notice%5 == 4 && mem[int(notice)*16+sizes[4]-1] != byte(notice+1) {
					return errors.New("it is not there")
				}
				all <- notice
				return nil
			}
		})
		var puts []*protocol.Request
		heard := 0
		for i := range n {
			b := make([]byte, sizes[i%5])
			b[len(b)-1] = byte(i + 1)
			put := &protocol.Request{Dest: 1, Buf: b}
			p.do(func(c *protocol.Core) { c.PutNotify(put, offsetKey(key, 16*i), uint32(i)) })
			if _, ok := p.e[0].Fabric().(protocol.Notifier); !ok {
				require.ErrorIs(t, put.Err, errors.ErrUnsupported)
				return
			}
			if i%5 == 4 { // the last of five concurrent ones
				p.wait(t, put)
			}
			puts = append(puts, put)
			for ; i%5 == 4 && heard <= i; heard++ { // the next ones overwrite the data that OnNotify checks
				require.EqualValues(t, heard, <-all)
			}
		}
		for _, put := range puts {
			p.wait(t, put)
			require.NoError(t, put.Err)
		}
		// An unexpected notification fails the peer.
		put := &protocol.Request{Dest: 1, Buf: make([]byte, 8)}
		p.do(func(c *protocol.Core) { c.PutNotify(put, key, n) })
		get := &protocol.Request{Dest: 1, Buf: make([]byte, 8)}
		p.wait(t, put)
		for get.Err == nil {
			*get = protocol.Request{Dest: 1, Buf: get.Buf}
			p.do(func(c *protocol.Core) { c.Get(get, key) })
			p.wait(t, get)
		}
		require.ErrorIs(t, get.Err, protocol.ErrLost)
		p.e[1].Do(func(c *protocol.Core) { require.ErrorIs(t, c.PeerError(0), protocol.ErrProtocol) })
	})
}
