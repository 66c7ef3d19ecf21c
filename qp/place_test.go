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
)

// place is copy for every alignment of both sides and every length, and leaves
// the neighbours alone.
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
				place(got[at:at+n], src[from:from+n])
				copy(want[at:], src[from:from+n])
				require.Equal(t, want, got, "%d bytes to %d from %d", n, at, from)
			}
		}
	}
}

// Whole packets at the end of an allocation, also of an odd one.
func TestPlaceAtTheEndOfAnAllocation(t *testing.T) {
	for n := 1; n < 600; n++ {
		src := bytes.Repeat([]byte{7}, n)
		dst := make([]byte, n)
		place(dst, src)
		require.Equal(t, src, dst)
	}
}

// poll spins until done says so.
func poll(done func() bool) {
	for !done() {
		runtime.Gosched()
	}
}

// polled is the last aligned word of mem, or the part of it that is mem's: what
// an application may poll for the end of a write.
type polled struct {
	word64 *uint64
	word32 *uint32
	mask   uint64 // of the bytes that are mem's
	size   int    // how many those are
}

func lastWord(mem []byte) polled {
	end := uintptr(unsafe.Pointer(&mem[0])) + uintptr(len(mem))
	if end%8 == 0 && len(mem) >= 8 {
		return polled{word64: (*uint64)(unsafe.Pointer(&mem[len(mem)-8])), mask: 1<<64 - 1, size: 8}
	}
	first := (end - 1) &^ 3 // of the word
	w := polled{word32: (*uint32)(unsafe.Add(unsafe.Pointer(&mem[len(mem)-1]), -int(end-1-first)))}
	for i := range int(end - first) {
		if first+uintptr(i) >= end-uintptr(len(mem)) {
			w.mask |= 0xff << shift(i)
			w.size++
		}
	}
	return w
}

func (w polled) load() uint64 {
	if w.word64 != nil {
		return atomic.LoadUint64(w.word64)
	}
	return uint64(atomic.LoadUint32(w.word32)) & w.mask
}

// A goroutine that polls the last word with acquire loads sees all that was
// placed before it once the word has changed, with no more synchronisation
// than that, and never a part of the word: the race detector is the judge.
func TestPollerSeesTheLastWordLast(t *testing.T) {
	for _, c := range []struct{ off, n int }{
		{0, 8}, {0, 12}, {0, 16}, {0, 100}, {0, 256}, {0, 4096}, {4, 4}, {4, 8}, {2, 14}, {1, 15}, {6, 18},
		{0, 1}, {1, 2}, {0, 3}, {0, 5}, {3, 4}, {3, 10}, {1, 254},
	} {
		const rounds = 100
		words := make([]uint64, 520)
		mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))[c.off:][:c.n]
		last := lastWord(mem)
		full := func(r uint32) uint64 { return uint64(byte(r)) * 0x0101010101010101 & last.mask }
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
				for _, b := range mem[:c.n-last.size] {
					if b != byte(r) {
						t.Errorf("round %d of %v: the last word is there, a byte before it is %d", r, c, b)
						break
					}
				}
				seen.Store(r)
			}
		})
		for r := uint32(1); r <= rounds; r++ {
			place(mem, bytes.Repeat([]byte{byte(r)}, c.n))
			poll(func() bool { return seen.Load() == r || t.Failed() })
		}
		wg.Wait()
	}
}

// Bytes that share the last word with placed ones keep what someone else
// stores to them meanwhile.
func TestPlaceKeepsConcurrentNeighbours(t *testing.T) {
	var word uint32
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&word)), 4)
	const rounds = 2000
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for r := range rounds {
				place(mem[2*i:2*i+1], []byte{byte(r)})
				if got := byte(atomic.LoadUint32(&word) >> shift(2*i)); got != byte(r) {
					t.Errorf("byte %d: placed %d, found %d", 2*i, byte(r), got)
					return
				}
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
}

// shift is where byte i of a word is in its value on this machine.
func shift(i int) int {
	one := uint32(1)
	if *(*byte)(unsafe.Pointer(&one)) == 1 {
		return 8 * i
	}
	return 8 * (3 - i)
}

// Atomics through the queue pair are atomic with respect to the processor's.
func TestAtomicsAgainstTheProcessor(t *testing.T) {
	var word uint64
	const rounds = 2000
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range rounds {
				fetchAdd(&word, 1)
				for {
					v := atomic.LoadUint64(&word)
					if compareSwap(&word, v, v+1) == v {
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
		w, ok := word64(mem[off:])
		require.Equal(t, off%8 == 0, ok)
		if ok {
			require.Equal(t, &words[off/8], w)
		}
	}
	_, ok := word64(mem[:7])
	require.False(t, ok)
}
