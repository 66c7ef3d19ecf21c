package sdp_test

import (
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestEchoOfOneGoroutine checks that a server that reads only after its last reply is written makes
// progress as long as its client reads, as with TCP, with segments of any size, copied or
// zero-copy.
func TestEchoOfOneGoroutine(t *testing.T) {
	for _, sizes := range [][2]int{{1000, 1000}, {1000, 200_000}, {200_000, 1000}, {200_000, 200_000}, {1 << 20, 1 << 20}} {
		t.Run(fmt.Sprintf("%d by %d", sizes[0], sizes[1]), func(t *testing.T) {
			eachFlowControl(t, func(t *testing.T, o sdp.Options) {
				o.ZeroCopy = 32 << 10
				echoOfOneGoroutine(t, o, sizes[0], sizes[1])
			})
		})
	}
}

func echoOfOneGoroutine(t *testing.T, o sdp.Options, write, echo int) {
	size := int64(8 << 20)
	if write+echo < 10_000 {
		size = 1 << 20
	}
	a, b := newEnds(t, rnic.Options{}, o).dial(t)
	require.NoError(t, a.SetDeadline(time.Now().Add(hang)))
	require.NoError(t, b.SetDeadline(time.Now().Add(hang)))
	var all sync.WaitGroup
	all.Go(func() {
		n, err := io.CopyBuffer(onlyWriter{b}, onlyReader{b}, make([]byte, echo))
		if err != nil || n != size {
			t.Errorf("the server has echoed %d of %d bytes: %v", n, size, err)
		}
		assert.NoError(t, b.Close())
	})
	all.Go(func() {
		n, err := io.CopyBuffer(onlyWriter{a}, onlyReader{stream(1, size)}, make([]byte, write))
		if err != nil || n != size {
			t.Errorf("the client has written %d of %d bytes: %v", n, size, err)
		}
		assert.NoError(t, a.CloseWrite())
	})
	checkStream(t, a, 1, size)
	all.Wait()
}

type onlyReader struct{ io.Reader }
