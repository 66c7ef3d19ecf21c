package sdp_test

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// random returns n bytes of a seed.
func random(n int, seed uint64) []byte {
	p := make([]byte, n)
	r := rand.NewPCG(seed, 0)
	for i := range p {
		p[i] = byte(r.Uint64())
	}
	return p
}

// TestZeroCopy checks that bytes arrive in order by every path, with Writes and Reads of sizes
// around the threshold.
func TestZeroCopy(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		o.ZeroCopy = 20_000
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		sent := random(4<<20, seed)
		go func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for p := sent; len(p) > 0; {
				n := min(len(p), 1+r.IntN(1<<r.IntN(18)))
				if k, err := a.Write(p[:n]); k != n || err != nil {
					t.Errorf("Write: %d of %d, %v", k, n, err)
				}
				p = p[n:]
			}
			_ = a.CloseWrite()
		}()
		r := rand.New(rand.NewPCG(seed, 2))
		var got bytes.Buffer
		for {
			p := make([]byte, 1<<17)
			if r.IntN(4) == 0 {
				p = p[:1+r.IntN(1<<r.IntN(18))]
			}
			n, err := b.Read(p)
			got.Write(p[:n])
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
		}
		require.True(t, bytes.Equal(sent, got.Bytes()))
		s, d := a.Stats(), b.Stats()
		require.Positive(t, s.ZeroCopySent)
		require.Equal(t, s.ZeroCopySent, d.ZeroCopyReceived)
		require.EqualValues(t, len(sent), s.BytesWritten)
		require.EqualValues(t, len(sent), d.BytesRead)
	})
}

// TestOffersOfSmallReads checks that a reader of small segments gets copies from a writer of large
// ones, which soon makes no offers, and offers again for larger Reads.
func TestOffersOfSmallReads(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		const piece, pieces = 32 << 10, 100   // of each half
		o.ZeroCopy, o.OfferTime = piece, hang // each offer gets its reply, however busy the machine
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		sent := random(2*pieces*piece, 1)
		written := make(chan error, 1)
		var offers uint64 // in the first half
		go func() {
			for i := range 2 * pieces {
				if _, err := a.Write(sent[i*piece:][:piece]); err != nil {
					written <- err
					return
				}
				if i == pieces-1 {
					offers = a.Stats().Offers
				}
			}
			written <- a.CloseWrite() // deferred data of RDMA is sent in a call
		}()
		got := make([]byte, len(sent))
		for at := 0; at < len(got)/2; at += 1000 {
			_, err := io.ReadFull(b, got[at:min(at+1000, len(got)/2)])
			require.NoError(t, err)
		}
		require.Zero(t, b.Stats().ZeroCopyReceived)
		_, err := io.ReadFull(b, got[len(got)/2:])
		require.NoError(t, err)
		require.NoError(t, <-written)
		require.True(t, bytes.Equal(sent, got))
		require.Less(t, offers, uint64(pieces/10), "32 Writes without one behind six")
		require.Positive(t, b.Stats().ZeroCopyReceived)
	})
}

// TestNeverDirect checks that an end without zero-copy gets messages, whatever the peer offers.
func TestNeverDirect(t *testing.T) {
	for _, d := range []sdp.FlowControl{sdp.NIC, sdp.RDMA, sdp.Credit} {
		e := newEnds(t, rnic.Options{}, sdp.Options{FlowControl: d, ZeroCopy: -1})
		e.a = stack(t, rnic.Options{}, sdp.Options{FlowControl: d, ZeroCopy: 32 << 10, OfferTime: hang})
		a, b := e.dial(t)
		sent := random(1<<20, 1)
		written := make(chan error, 1)
		go func() {
			_, err := a.Write(sent)
			written <- cmp.Or(err, a.CloseWrite())
		}()
		got, err := io.ReadAll(b)
		require.NoError(t, err)
		require.NoError(t, <-written)
		require.True(t, bytes.Equal(sent, got))
		require.Positive(t, a.Stats().Offers)
		require.Zero(t, b.Stats().ZeroCopyReceived)
	}
}

// TestZeroCopyWithoutReader checks that a Write that is not read falls back to the buffers, and
// ends with its deadline if these are full. Exactly the reported bytes arrive.
func TestZeroCopyWithoutReader(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		o.ZeroCopy = 20_000
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		sent := random(8<<20, 1)
		small := 50_000
		n, err := a.Write(sent[:small]) // fits in the buffers
		require.NoError(t, err)
		require.Equal(t, small, n)
		require.NoError(t, a.SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
		n, err = a.Write(sent[small:])
		require.True(t, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
		require.Less(t, small+n, len(sent))
		require.NoError(t, a.CloseWrite())
		got, err := io.ReadAll(b)
		require.NoError(t, err)
		require.True(t, bytes.Equal(sent[:small+n], got), "%d bytes of %d", len(got), small+n)
	})
}

// TestZeroCopyBothWays has both ends write more than all buffers hold, and read.
func TestZeroCopyBothWays(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		o.ZeroCopy = 20_000
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		sent := random(8<<20, 1)
		results := make(chan error, 4)
		for _, c := range []*sdp.Conn{a, b} {
			go func() {
				_, err := c.Write(sent)
				results <- errors.Join(err, c.CloseWrite())
			}()
			go func() {
				got := make([]byte, len(sent))
				_, err := io.ReadFull(c, got)
				if err == nil && !bytes.Equal(sent, got) {
					err = errors.New("other bytes")
				}
				results <- err
			}()
		}
		for range 4 {
			require.NoError(t, <-results)
		}
	})
}

// TestZeroCopyReadDeadline checks that the memory of a Read is its own again when the Read returns,
// and that the stream continues.
func TestZeroCopyReadDeadline(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		o.ZeroCopy = 20_000
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		sent := random(1<<20, 1)
		got := make([]byte, len(sent))
		go func() { _, _ = a.Read(make([]byte, 1)) }() // with RDMA deferred data is sent in a call
		exchange := func() {
			t.Helper()
			clear(got)
			done := make(chan error, 1)
			go func() {
				_, err := a.Write(sent)
				done <- err
			}()
			_, err := io.ReadFull(b, got)
			require.NoError(t, err)
			require.NoError(t, <-done)
			require.True(t, bytes.Equal(sent, got))
		}
		exchange() // from now on Reads lend memory
		for range 5 {
			require.NoError(t, b.SetReadDeadline(time.Now().Add(time.Millisecond)))
			_, err := b.Read(got)
			require.True(t, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
			require.NoError(t, b.SetReadDeadline(time.Time{}))
			exchange()
		}
	})
}
