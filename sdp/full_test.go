package sdp_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestDeadlineOfFullPeer checks that a Write to a peer that does not read ends with the deadline,
// and that exactly the reported bytes arrive.
func TestDeadlineOfFullPeer(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, size := range []int{1000, 32 << 10, 1 << 20, 0} { // 0: all
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			eachFlowControl(t, func(t *testing.T, o sdp.Options) {
				o.ZeroCopy = 32 << 10 // offers must be canceled
				a, b := newEnds(t, rnic.Options{}, o).dial(t)
				require.NoError(t, a.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
				source := stream(1, 1<<30)
				var wrote int64
				var err error
				rng := rand.New(rand.NewPCG(seed, 2))
				for err == nil {
					n := size
					if size == 0 {
						n = 1 + rng.IntN(1<<rng.IntN(18))
					}
					p := make([]byte, n)
					_, _ = io.ReadFull(source, p)
					n, err = a.Write(p)
					wrote += int64(n)
				}
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				var timeout net.Error
				require.ErrorAs(t, err, &timeout)
				require.True(t, timeout.Timeout())
				if size > 0 && size < o.ZeroCopy {
					require.Positive(t, wrote) // an offer may not have been accepted in time
				}
				require.NoError(t, a.Close())
				checkStream(t, b, 1, wrote)
			})
		})
	}
}

// TestReadDeadlineBesideFullPeer checks that a blocked direction does not delay a Read of the other
// beyond its deadline, although the Read may have lent its memory.
func TestReadDeadlineBesideFullPeer(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		const size = 1 << 20
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		go func() {
			_, _ = b.Write(make([]byte, size))
			_, _ = b.Read(make([]byte, 1)) // deferred data is sent within a call
		}()
		_, err := io.ReadFull(a, make([]byte, size)) // without copies, so that the next Read lends its memory
		require.NoError(t, err)
		stuck := make(chan error, 1)
		go func() {
			var err error
			for err == nil {
				_, err = a.Write(make([]byte, 10_000))
			}
			stuck <- err
		}()
		for a.Stats().Stalls == 0 {
			runtime.Gosched() // until the buffers are full
		}
		for range 3 {
			require.NoError(t, a.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
			_, err = a.Read(make([]byte, size))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		}
		require.NoError(t, a.Close())
		require.ErrorIs(t, <-stuck, net.ErrClosed)
	})
}

// TestCompleteWrite checks that a Write that has accepted all of its bytes has no error, also if its
// deadline has passed.
func TestCompleteWrite(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		o.ZeroCopy = 16 << 10
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		read := make(chan error, 1)
		go func() {
			_, err := io.CopyBuffer(onlyWriter{io.Discard}, onlyReader{b}, make([]byte, 64<<10))
			read <- err
		}()
		rng, p, whole := rand.New(rand.NewPCG(seed, 3)), make([]byte, 64<<10), 0
		for range 500 {
			require.NoError(t, a.SetWriteDeadline(time.Now().Add(time.Duration(rng.IntN(400))*time.Microsecond)))
			n, err := a.Write(p)
			if n == len(p) {
				require.NoError(t, err)
				whole++
			} else {
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			}
		}
		t.Logf("%d of 500 in time", whole)
		require.NoError(t, a.Close())
		require.NoError(t, <-read)
	})
}
