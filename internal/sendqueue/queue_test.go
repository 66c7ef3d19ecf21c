package sendqueue_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/internal/sendqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A sender that does not wait for the reader.
func Example() {
	r, w := io.Pipe()
	q := sendqueue.New(w, sendqueue.Options{})
	q.Append([]byte("hello, "))
	q.AppendFunc(func(b []byte) []byte { return fmt.Appendf(b, "%d readers", 1) })
	q.CloseAfterFlush()
	text, err := io.ReadAll(r)
	fmt.Println(string(text), err)
	// Output: hello, 1 readers <nil>
}

// TestLimit drops the queue of a reader that does not read, and ends a blocked write.
func TestLimit(t *testing.T) {
	const limit = 1 << 20
	r, w := io.Pipe()
	written := make(chan int, 100)
	q := sendqueue.New(w, sendqueue.Options{Limit: limit, Written: func(n int) { written <- n }})
	q.Append([]byte("hello"))
	got := make([]byte, 5)
	_, err := io.ReadFull(r, got)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	require.Equal(t, 5, <-written)
	require.NoError(t, q.Err())
	chunk := bytes.Repeat([]byte("x"), limit/4)
	for range 10 {
		q.Append(chunk)
	}
	require.ErrorIs(t, q.Err(), sendqueue.ErrFull)
	<-q.Done()
	rest, _ := io.ReadAll(r)
	require.LessOrEqual(t, len(rest), limit)
}

// TestFailedWrite closes a queue, unless it has to report what it would have written.
func TestFailedWrite(t *testing.T) {
	r, w := io.Pipe()
	q := sendqueue.New(w, sendqueue.Options{})
	require.NoError(t, r.Close())
	q.Append([]byte("x"))
	<-q.Done()
	require.ErrorIs(t, q.Err(), io.ErrClosedPipe)

	r, w = io.Pipe()
	written := make(chan int, 1)
	q = sendqueue.New(w, sendqueue.Options{Written: func(n int) { written <- n }})
	require.NoError(t, r.Close())
	for range 3 {
		q.Append([]byte("x"))
		require.Equal(t, 1, <-written)
	}
	q.Close()
	<-q.Done()
	require.NoError(t, q.Err())
}

// TestClose ends a blocked write.
func TestClose(t *testing.T) {
	r, w := io.Pipe()
	q := sendqueue.New(w, sendqueue.Options{})
	q.Append([]byte("x"))
	q.Close()
	<-q.Done()
	_, err := r.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	q.Append([]byte("too late"))
}
