package netns_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/netns"
)

// TestCable sends a datagram from one namespace to another.
func TestCable(t *testing.T) {
	a, b := netns.NewTest(t), netns.NewTest(t)
	_, to := netns.ConnectTestVeth(a, b, "cable0")
	var in net.PacketConn
	b.Do(func() {
		var err error
		in, err = net.ListenPacket("udp", "["+to.String()+"]:4791")
		require.NoError(t, err)
	})
	defer in.Close()
	a.Do(func() {
		out, err := net.Dial("udp", in.LocalAddr().String())
		require.NoError(t, err)
		defer out.Close()
		_, err = out.Write([]byte("hello"))
		require.NoError(t, err)
	})
	require.NoError(t, in.SetReadDeadline(time.Now().Add(5*time.Second)))
	var buf [8]byte
	n, _, err := in.ReadFrom(buf[:])
	require.NoError(t, err)
	require.Equal(t, "hello", string(buf[:n]))
}
