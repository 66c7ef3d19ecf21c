package sdp_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestDeferredLeavesInTheNextCall checks that data deferred by RDMA flow control stays while there is
// no call, although the peer has reported free space, and is sent in the next one.
func TestDeferredLeavesInTheNextCall(t *testing.T) {
	a, b := newEnds(t, rnic.Options{}, sdp.Options{FlowControl: sdp.RDMA, Buffers: 8, BufferBytes: 8 << 10, ZeroCopy: -1}).dial(t)
	const total = 96 << 10
	_, err := a.Write(make([]byte, total))
	require.NoError(t, err)
	held := a.Stats().Held
	require.Positive(t, held, "the peer does not read")
	credits := a.Stats().Credits
	_, err = io.ReadFull(b, make([]byte, total-held))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return a.Stats().Credits > credits }, hang, hang/10000, "b's report of room comes without a call at a")
	require.Equal(t, held, a.Stats().Held)

	require.NoError(t, a.SetDeadline(time.Now().Add(hang)))
	require.NoError(t, b.SetDeadline(time.Now().Add(hang)))
	answered := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(b, make([]byte, held))
		if err == nil {
			_, err = b.Write([]byte{1})
		}
		answered <- err
	}()
	_, err = io.ReadFull(a, make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, <-answered)
}
