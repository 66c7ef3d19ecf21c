package sdp_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/rpc"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// stream returns n pseudo-random bytes of a seed.
func stream(seed, n int64) io.Reader {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], uint64(seed))
	return io.LimitReader(rand.NewChaCha8(key), n)
}

// checkStream reads to the end and compares with a stream.
func checkStream(t testing.TB, r io.Reader, seed, n int64) {
	t.Helper()
	want, got := sha256.New(), sha256.New()
	_, _ = io.Copy(want, stream(seed, n))
	k, err := io.Copy(got, r)
	if err != nil || k != n || !bytes.Equal(want.Sum(nil), got.Sum(nil)) {
		t.Errorf("stream %d of %d bytes: %d arrived, %v", seed, n, k, err)
	}
}

// TestCopy tests all forms of io.Copy, from a connection to another.
func TestCopy(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		const size = 10<<20 + 1
		o.ZeroCopy, o.OfferTime = 128<<10, hang
		e := newEnds(t, rnic.Options{}, o)
		a, middle1 := e.dial(t)
		middle2, b := e.dial(t)
		var all sync.WaitGroup
		all.Go(func() {
			n, err := io.Copy(middle2, middle1)
			if n != size || err != nil {
				t.Errorf("copied %d of %d bytes: %v", n, size, err)
			}
			middle2.CloseWrite()
		})
		all.Go(func() { checkStream(t, b, 7, size) })
		n, err := a.ReadFrom(stream(7, size))
		require.NoError(t, err)
		require.EqualValues(t, size, n)
		require.NoError(t, a.CloseWrite())
		all.Wait()
		require.Positive(t, a.Stats().ZeroCopySent)
		require.Positive(t, middle2.Stats().ZeroCopySent)
	})
}

// TestBuffers writes a list of slices, as writev does.
func TestBuffers(t *testing.T) {
	a, b := newEnds(t, rnic.Options{}, sdp.Options{}).dial(t)
	var list net.Buffers
	var want []byte
	for i := range 100 {
		p := bytes.Repeat([]byte{byte(i)}, i*i)
		list, want = append(list, p), append(want, p...)
	}
	go func() {
		if n, err := list.WriteTo(a); n != int64(len(want)) || err != nil {
			t.Errorf("%d of %d bytes: %v", n, len(want), err)
		}
		a.CloseWrite()
	}()
	got, err := io.ReadAll(b)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
}

// TestLines exchanges lines through package bufio.
func TestLines(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		go func() {
			defer b.Close()
			rw := bufio.NewReadWriter(bufio.NewReader(b), bufio.NewWriter(b))
			for {
				line, err := rw.ReadString('\n')
				if err == io.EOF {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Fprintf(rw, "you said %s", line)
				assert.NoError(t, rw.Flush())
			}
		}()
		r := bufio.NewReader(a)
		for i := range 2000 {
			_, err := fmt.Fprintf(a, "line %d\n", i)
			require.NoError(t, err)
			line, err := r.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("you said line %d\n", i), line)
		}
		require.NoError(t, a.CloseWrite())
		_, err := r.ReadByte()
		require.Equal(t, io.EOF, err)
	})
}

// Arith is served by net/rpc.
type Arith struct{}

// Args are two factors.
type Args struct{ A, B int }

// Multiply is called remotely.
func (Arith) Multiply(args *Args, product *int) error {
	*product = args.A * args.B
	return nil
}

// TestRPC has many concurrent calls over one connection, and several connections.
func TestRPC(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		e := newEnds(t, rnic.Options{}, o)
		server := rpc.NewServer()
		require.NoError(t, server.Register(Arith{}))
		var all sync.WaitGroup
		for range 4 {
			a, b := e.dial(t)
			go server.ServeConn(b)
			client := rpc.NewClient(a)
			all.Go(func() {
				calls := make([]*rpc.Call, 500)
				for i := range calls {
					calls[i] = client.Go("Arith.Multiply", &Args{i, i + 1}, new(int), nil)
				}
				for i, call := range calls {
					if <-call.Done; call.Error != nil || *call.Reply.(*int) != i*(i+1) {
						t.Errorf("%d: %v %v", i, *call.Reply.(*int), call.Error)
					}
				}
				assert.NoError(t, client.Close())
			})
		}
		all.Wait()
	})
}
