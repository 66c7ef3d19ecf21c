package frame_test

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/cmd/internal/mpirun/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFramesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type one struct {
			kind frame.Kind
			rank int
			b    string
		}
		var list []one
		for range rapid.IntRange(0, 9).Draw(t, "frames") {
			list = append(list, one{
				frame.Kind(rapid.Byte().Draw(t, "kind")), rapid.IntRange(-1, 1<<30).Draw(t, "rank"),
				strings.Repeat("x", rapid.IntRange(0, 3*frame.Chunk).Draw(t, "bytes")),
			})
		}
		r, w := io.Pipe()
		q := frame.NewQueue(w)
		var direct bytes.Buffer
		d := frame.NewWriter(&direct)
		for _, f := range list {
			q.Send(f.kind, f.rank, []byte(f.b))
			require.NoError(t, d.Write(f.kind, f.rank, []byte(f.b)))
		}
		q.Close()
		q.Send(frame.Note, 0, []byte("too late"))
		for _, r := range []*frame.Reader{frame.NewReader(r), frame.NewReader(&direct)} {
			for _, f := range list {
				kind, rank, b, err := r.Next()
				require.NoError(t, err)
				require.Equal(t, f, one{kind, rank, string(b)})
			}
			_, _, _, err := r.Next()
			require.Equal(t, io.EOF, err)
		}
		<-q.Done()
	})
}

func TestGreet(t *testing.T) {
	var other strings.Builder
	r := frame.NewReader(strings.NewReader("welcome to node1" + frame.Hello + "B\x00\x00\x00\x00\x00\x00\x00\x00\n"))
	require.NoError(t, r.ReadHello(&other))
	require.Equal(t, "welcome to node1", other.String())
	kind, _, _, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, frame.Finished, kind)

	other.Reset()
	err = frame.NewReader(strings.NewReader("sh: softrnic: not found\n")).ReadHello(&other)
	require.Equal(t, io.ErrUnexpectedEOF, err)
	require.Equal(t, "sh: softrnic: not found\n", other.String())

	require.ErrorContains(t, frame.NewReader(io.LimitReader(endless{}, 1<<20)).ReadHello(io.Discard), "no agent")
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestBadFrames(t *testing.T) {
	_, _, _, err := frame.NewReader(strings.NewReader("o\x00\x00\x00\x00\xff\xff\xff\xff")).Next()
	require.ErrorContains(t, err, "4294967295 bytes")
	_, _, _, err = frame.NewReader(strings.NewReader("o\x00\x00\x00\x00\x00\x00\x00\x05abc")).Next()
	require.ErrorContains(t, err, "truncated frame")
	_, _, _, err = frame.NewReader(strings.NewReader("o\x00")).Next()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Error(t, frame.NewWriter(io.Discard).WriteJSON(frame.Note, 0, func() {}))
}

// TestQueueWithoutAReader checks that a queue whose reader has ended does not block its writers.
func TestQueueWithoutAReader(t *testing.T) {
	r, w := io.Pipe()
	q := frame.NewQueue(w)
	require.NoError(t, r.Close())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				q.Send(frame.Stdin, 0, make([]byte, frame.Chunk))
			}
		})
	}
	all.Wait()
	<-q.Done()
	require.Error(t, q.SendJSON(frame.Start, 0, func() {}))
	require.NoError(t, q.SendJSON(frame.Start, 0, frame.Spec{}))
	q.Close()
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("o\x00\x00\x00\x00\x00\x00\x00\x03abc"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := frame.NewReader(bytes.NewReader(b))
		for total := 0; ; {
			_, _, got, err := r.Next()
			if err != nil {
				return
			}
			if total += len(got); total > len(b) {
				t.Fatal("more than there was")
			}
		}
	})
}
