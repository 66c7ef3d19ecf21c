package shm

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

const testSize = 1 << 20

// newTestRing returns aligned memory of a ring.
func newTestRing(t testing.TB) []byte {
	t.Helper()
	mem := make([]byte, controlSize+testSize+lineSize)
	off := lineSize - int(uintptr(unsafe.Pointer(&mem[0]))%lineSize)
	return mem[off%lineSize:][:controlSize+testSize]
}

func openBoth(t testing.TB, mem []byte) (*producer, *consumer) {
	t.Helper()
	r, err := newRing(mem)
	require.NoError(t, err)
	p := newProducer(r, nil)
	return &p, &consumer{ring: r}
}

// TestModel moves records of random sizes through a ring, and compares each with a list.
func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		p, c := openBoth(t, newTestRing(t))
		var sent [][]byte
		var words []word
		full, wraps := 0, 0
		for step := range 5000 {
			if random.IntN(3) < 1+step/500%2 { // the ring fills and empties in turns
				n := 1 + random.IntN(maxRecord)
				if random.IntN(2) == 0 {
					n = 1 + random.IntN(200)
				}
				before := p.offset
				room, err := p.reserveRecord(n)
				require.NoError(t, err)
				if room == nil {
					full++
					continue
				}
				if p.offset < before {
					wraps++
				}
				data := bytes.Repeat([]byte{byte(random.Uint32())}, n)
				copy(room, data)
				w := newWord(n, 1+random.IntN(n), uint8(random.Uint32()), random.IntN(2) == 0)
				p.commitRecord(w)
				sent, words = append(sent, data), append(words, w)
				continue
			}
			c.releaseRecords()
			w, buffer, err := c.takeRecord()
			require.NoError(t, err)
			if len(sent) == 0 {
				require.Zero(t, w, "seed %d", seed)
				continue
			}
			require.Equal(t, words[0], w, "seed %d", seed)
			require.True(t, bytes.Equal(sent[0], buffer), "seed %d", seed)
			sent, words = sent[1:], words[1:]
		}
		require.NotZero(t, full, "the ring was never full")
		require.NotZero(t, wraps)
	}
}

// sendRecord sends a record of n bytes that all have one value, and reports whether the ring had space.
func sendRecord(t *testing.T, p *producer, n int, value byte) bool {
	t.Helper()
	room, err := p.reserveRecord(n)
	require.NoError(t, err)
	if room == nil {
		return false
	}
	room[0], room[n-1] = value, value
	p.commitRecord(newWord(n, n, 0, false))
	return true
}

// receiveRecord takes a record of n bytes and checks their value.
func receiveRecord(t *testing.T, c *consumer, n int, value byte) {
	t.Helper()
	c.releaseRecords()
	w, data, err := c.takeRecord()
	require.NoError(t, err)
	require.Equal(t, n, w.byteCount())
	require.Equal(t, []byte{value, value}, []byte{data[0], data[n-1]})
}

// TestLimit checks that a producer of small records stays in a part of the ring while the consumer keeps
// up, and then has the whole ring when the consumer stops, wherever it stops, once and again.
func TestLimit(t *testing.T) {
	const n = 4000
	for _, kept := range []int{1, 10, 33, 50, 64, 100, 300} {
		p, c := openBoth(t, newTestRing(t))
		for round := range 5 {
			for i := range kept {
				require.True(t, sendRecord(t, p, n, byte(i)))
				receiveRecord(t, c, n, byte(i))
			}
			if round == 0 {
				require.EqualValues(t, minLimit, p.limit)
			}
			count := 0
			for sendRecord(t, p, n, byte(count)) {
				count++
			}
			require.Greater(t, count*recordSize(n), testSize-chunkSize-chunkSize/2, "%d records, round %d", kept, round)
			for i := range count {
				receiveRecord(t, c, n, byte(i))
			}
			c.releaseAll()
		}
	}
}

// TestReleasedRing checks that a ring of the least size has space for the largest record as soon as all
// others are read, however the records before it divide the chunks.
func TestReleasedRing(t *testing.T) {
	p, c := openBoth(t, newTestRing(t)[:controlSize+minLimit])
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20000 {
		n := maxRecord
		if random.IntN(2) == 0 {
			n = 1 + random.IntN(1<<random.IntN(16))
		}
		require.True(t, sendRecord(t, p, n, byte(i)), "record %d of %d bytes", i, n)
		receiveRecord(t, c, n, byte(i))
		c.releaseAll()
	}
}

// TestConcurrent moves numbered records between two goroutines: none is lost, doubled or mixed.
func TestConcurrent(t *testing.T) {
	p, c := openBoth(t, newTestRing(t))
	const count = 20000
	go func() {
		for i := uint64(0); i < count; {
			n := 8 + int(i*7919%9000)
			room, err := p.reserveRecord(n)
			if err != nil {
				panic(err)
			}
			if room == nil {
				continue
			}
			for j := 0; j+8 <= n; j += 8 {
				binary.LittleEndian.PutUint64(room[j:], i)
			}
			p.commitRecord(newWord(n, n, 0, false))
			i++
		}
	}()
	for i := uint64(0); i < count; {
		c.releaseRecords()
		w, buffer, err := c.takeRecord()
		require.NoError(t, err)
		if w == 0 {
			continue
		}
		if want := 8 + int(i*7919%9000); w.byteCount() != want {
			t.Fatalf("record %d has %d bytes, want %d", i, w.byteCount(), want)
		}
		for j := 0; j+8 <= w.byteCount(); j += 8 {
			if got := binary.LittleEndian.Uint64(buffer[j:]); got != i {
				t.Fatalf("record %d has the data of record %d at %d", i, got, j)
			}
		}
		i++
	}
}

// TestSleep has the consumer woken for a record that comes after beginSleep, once, and refuses to
// sleep if one came before.
func TestSleep(t *testing.T) {
	p, c := openBoth(t, newTestRing(t))
	send := func() bool {
		_, err := p.reserveRecord(10)
		require.NoError(t, err)
		return p.commitRecord(newWord(10, 10, 0, false))
	}
	require.False(t, send(), "the consumer is awake")
	require.False(t, c.beginSleep(), "a record is there")
	require.False(t, send())
	for range 2 {
		w, _, err := c.takeRecord()
		require.NoError(t, err)
		require.NotZero(t, w)
	}
	require.True(t, c.beginSleep())
	require.True(t, send())
	require.False(t, send(), "it is being woken")
	c.endSleep()
	require.False(t, send())
}

// FuzzHostile lets a peer write anything anywhere into the ring: both ends return records within
// their bounds or an error, and never touch other memory.
func FuzzHostile(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 2, 3})
	f.Add(bytes.Repeat([]byte{255}, 64))
	f.Fuzz(func(t *testing.T, script []byte) {
		mem := newTestRing(t)
		p, c := openBoth(t, mem)
		for len(script) >= 13 {
			at := int(binary.LittleEndian.Uint32(script)) % (len(mem) / 8) * 8
			binary.LittleEndian.PutUint64(mem[at:], binary.LittleEndian.Uint64(script[4:]))
			kind := script[12]
			script = script[13:]
			if kind&1 == 0 {
				n := 1 + int(kind)*257
				if room, err := p.reserveRecord(n); err == nil && room != nil {
					require.Len(t, room, n)
					p.commitRecord(newWord(n, n, kind, false))
				}
				continue
			}
			if kind&2 != 0 { // where the consumer looks
				binary.LittleEndian.PutUint64(c.records[c.offset:], uint64(wordValid)|uint64(at)<<3|uint64(kind)<<16)
			}
			c.releaseRecords()
			if w, data, err := c.takeRecord(); err == nil && w != 0 {
				require.Len(t, data, w.byteCount())
				bytes.Count(data, []byte{0}) // reads all of it
				require.LessOrEqual(t, w.byteCount(), maxRecord)
				require.LessOrEqual(t, w.segmentSize(), w.byteCount())
			}
		}
	})
}
