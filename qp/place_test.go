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

// A goroutine that polls the last word with acquire loads sees all that was
// placed before it once the word has changed, with no more synchronisation
// than that: the race detector is the judge.
func TestPollerSeesTheLastWordLast(t *testing.T) {
	for _, n := range []int{8, 12, 16, 100, 256, 4096} {
		const rounds = 200
		words := make([]uint64, n/8+1)
		mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
		last := (*uint32)(unsafe.Pointer(&mem[n-4]))
		load := func() uint32 { return atomic.LoadUint32(last) }
		if n%8 == 0 { // the last aligned word is the one to poll
			word := (*uint64)(unsafe.Pointer(&mem[n-8]))
			load = func() uint32 { return uint32(atomic.LoadUint64(word)) }
		}
		var seen atomic.Uint32
		var wg sync.WaitGroup
		wg.Go(func() {
			for r := uint32(1); r <= rounds; r++ {
				poll(func() bool { return load() == uint32(byte(r))*0x01010101 || t.Failed() })
				for _, b := range mem[:n-8+n%8] {
					if b != byte(r) {
						t.Errorf("round %d of %d bytes: the last word is there, a byte before it is %d", r, n, b)
						break
					}
				}
				seen.Store(r)
			}
		})
		for r := uint32(1); r <= rounds; r++ {
			place(mem, bytes.Repeat([]byte{byte(r)}, n))
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
