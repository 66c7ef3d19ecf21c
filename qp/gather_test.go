package qp

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/place"
)

// TestPlaceIsCopy compares place with copy for every alignment of both sides and every length, and
// checks that adjacent bytes are unchanged.
func TestPlaceIsCopy(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	src := make([]byte, 64)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	for at := range 16 {
		for from := range 9 {
			for n := range 40 {
				got := bytes.Repeat([]byte{garbage}, 64)
				want := bytes.Clone(got)
				writeMemory(got[at:at+n], src[from:from+n])
				copy(want[at:], src[from:from+n])
				require.Equal(t, want, got, "%d bytes to %d from %d", n, at, from)
			}
		}
	}
}

// TestPlaceAtTheEndOfAnAllocation places whole packets at the end of an allocation, also of an odd
// one.
func TestPlaceAtTheEndOfAnAllocation(t *testing.T) {
	for n := 1; n < 600; n++ {
		src := bytes.Repeat([]byte{7}, n)
		dst := make([]byte, n)
		writeMemory(dst, src)
		require.Equal(t, src, dst)
	}
}

// poll spins until done returns true.
func poll(done func() bool) {
	for !done() {
		runtime.Gosched()
	}
}

// polled is the last aligned word that lies completely in mem: the word that an application may
// poll for the end of a write.
type polled struct {
	word64 *uint64
	word32 *uint32
	at     int // in mem
	ones   uint64
}

// lastWord returns the word to poll, or false if mem contains none.
func lastWord(mem []byte) (polled, bool) {
	end := uintptr(unsafe.Pointer(&mem[0])) + uintptr(len(mem))
	n := len(mem) - int(end%4)
	switch {
	case (end-end%4)%8 == 0 && n >= 8:
		return polled{word64: (*uint64)(unsafe.Pointer(&mem[n-8])), at: n - 8, ones: 0x0101010101010101}, true
	case n >= 4:
		return polled{word32: (*uint32)(unsafe.Pointer(&mem[n-4])), at: n - 4, ones: 0x01010101}, true
	}
	return polled{}, false
}

// size returns the size of the word in bytes.
func (w polled) size() int {
	if w.word64 != nil {
		return 8
	}
	return 4
}

func (w polled) load() uint64 {
	if w.word64 != nil {
		return atomic.LoadUint64(w.word64)
	}
	return uint64(atomic.LoadUint32(w.word32))
}

// TestPollerSeesTheLastWordLast checks that a goroutine that polls the last complete word with
// acquire loads sees all data placed with it once the word has changed, including odd bytes after
// it, without other synchronization, and never a part of the word. The race detector checks the
// order.
func TestPollerSeesTheLastWordLast(t *testing.T) {
	for _, c := range []struct{ off, n int }{
		{0, 8}, {0, 12}, {0, 16}, {0, 100}, {0, 256}, {0, 4096}, {4, 4}, {4, 8}, {2, 14}, {1, 15}, {6, 18},
		{0, 5}, {0, 9}, {0, 11}, {4, 7}, {3, 10}, {1, 254}, {5, 9},
	} {
		const rounds = 100
		words := make([]uint64, 520)
		mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))[c.off:][:c.n]
		last, ok := lastWord(mem)
		require.True(t, ok, "%v", c)
		full := func(r uint32) uint64 { return uint64(byte(r)) * last.ones }
		var seen atomic.Uint32
		var wg sync.WaitGroup
		wg.Go(func() {
			for r := uint32(1); r <= rounds; r++ {
				poll(func() bool {
					v := last.load()
					if v != full(r) && v != full(r-1) {
						t.Errorf("round %d of %v: half a word, %x", r, c, v)
					}
					return v == full(r) || t.Failed()
				})
				for i, b := range mem {
					if b != byte(r) && (i < last.at || i >= last.at+last.size()) {
						t.Errorf("round %d of %v: the last word is there, byte %d is %d", r, c, i, b)
						break
					}
				}
				seen.Store(r)
			}
		})
		for r := uint32(1); r <= rounds; r++ {
			writeMemory(mem, bytes.Repeat([]byte{byte(r)}, c.n))
			poll(func() bool { return seen.Load() == r || t.Failed() })
		}
		wg.Wait()
	}
}

// TestPlaceLeavesNeighboursAlone checks that bytes in the same words as placed ones are not
// accessed. Their owner stores to them plainly meanwhile: the race detector checks that, and
// without it the test checks that no store is lost.
func TestPlaceLeavesNeighboursAlone(t *testing.T) {
	words := make([]uint64, 4)
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 32)
	for at := 8; at < 16; at++ {
		for n := 1; n < 12; n++ {
			var placed atomic.Bool
			var wg sync.WaitGroup
			wg.Go(func() {
				for r := 0; r < 100 || !placed.Load(); r++ {
					for i := range mem {
						if i < at || i >= at+n {
							if r > 0 && mem[i] != byte(r-1) {
								t.Errorf("%d bytes to %d changed byte %d", n, at, i)
								return
							}
							mem[i] = byte(r)
						}
					}
					runtime.Gosched()
				}
			})
			for r := range 20 {
				writeMemory(mem[at:at+n], bytes.Repeat([]byte{byte(r)}, n))
				runtime.Gosched()
			}
			placed.Store(true)
			wg.Wait()
			require.Equal(t, bytes.Repeat([]byte{19}, n), mem[at:at+n])
		}
	}
}

// TestAtomicsAgainstTheProcessor checks that atomics of the queue pair are atomic with respect to
// those of the processor.
func TestAtomicsAgainstTheProcessor(t *testing.T) {
	var word uint64
	const rounds = 2000
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range rounds {
				place.FetchAdd(&word, 1)
				for {
					v := atomic.LoadUint64(&word)
					if place.CompareSwap(&word, v, v+1) == v {
						break
					}
				}
			}
		})
	}
	for range rounds {
		atomic.AddUint64(&word, 1)
	}
	wg.Wait()
	require.EqualValues(t, 5*rounds, word)
}

func TestWord64(t *testing.T) {
	words := make([]uint64, 3)
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 24)
	for off := range 17 {
		w, ok := atomicWord(mem[off:])
		require.Equal(t, off%8 == 0, ok)
		if ok {
			require.Equal(t, &words[off/8], w)
		}
	}
	_, ok := atomicWord(mem[:7])
	require.False(t, ok)
}
