package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// TestSendQueue compares a queue with a slice.
func TestSendQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q sendQueue
		var want, spare []byte
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				b := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "bytes")
				q.appendBytes(b)
				want = append(want, b...)
			},
			"remove": func(t *rapid.T) {
				n := rapid.IntRange(0, len(want)).Draw(t, "n")
				q.removeFirst(n)
				want = want[n:]
			},
			"swap": func(t *rapid.T) {
				spare = q.swapMemory(spare)
				require.Equal(t, string(want), string(spare))
				want = nil
			},
			"": func(t *rapid.T) { require.Equal(t, string(want), string(q.pendingBytes())) },
		})
	})
}

// acceptor is a socket that accepts a number of bytes per write.
type acceptor struct {
	socket
	limit    int
	got      []byte
	writes   int
	awaiting bool
}

func (a *acceptor) writeSome(list [][]byte) (n int, err error) {
	a.writes++
	for _, b := range list {
		k := min(len(b), a.limit-n)
		a.got = append(a.got, b[:k]...)
		n += k
	}
	return n, nil
}

func (a *acceptor) awaitWritable(on bool) { a.awaiting = on }

// TestBatch checks that consecutive short packets are written together, behind the first one, and
// that bytes that the system does not accept follow in order.
func TestBatch(t *testing.T) {
	s := &acceptor{limit: 1 << 20}
	f := &Fabric{o: Options{Queue: 1 << 20}, flushes: 1, links: make([]*link, 2)}
	f.timer = time.AfterFunc(time.Hour, func() {})
	defer f.timer.Stop()
	l := newLink(f, 1)
	l.socket = s
	var want []byte
	send := func(n int) {
		want = append(want, make([]byte, envelope.Size)...)
		payload := make([]byte, n)
		for i := range payload {
			payload[i] = byte(len(want) + i)
		}
		want = append(want, payload...)
		l.sendPacket(&envelope.Header{}, payload)
	}
	for range 10 {
		send(100)
	}
	require.Equal(t, 1, s.writes)
	f.Flush()
	require.Equal(t, 2, s.writes)
	require.Equal(t, want, s.got)

	send(10)
	send(10)
	send(maxBatchedPayload + 1) // with the batch
	require.Equal(t, 4, s.writes)
	require.Equal(t, want, s.got)

	f.Flush()
	s.limit = 7
	for n := range 5 {
		send(100 * n)
	}
	require.True(t, s.awaiting)
	f.Flush()
	require.Equal(t, 5, s.writes, "it waits")
	for s.awaiting {
		l.continueWriting()
	}
	require.Equal(t, want, s.got)
	require.Empty(t, l.queue.pendingBytes())
}
