package sdp_test

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

func TestHello(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		require.Equal(t, o.FlowControl, a.FlowControl())
		require.Equal(t, o.FlowControl, b.FlowControl())
		require.Equal(t, o.FlowControl == sdp.NIC, a.AdapterCounts())
		require.Equal(t, o.FlowControl == sdp.NIC, b.AdapterCounts())
		require.Equal(t, a.LocalAddr(), b.RemoteAddr())
		n, err := a.Write([]byte("hello"))
		require.NoError(t, err)
		require.Equal(t, 5, n)
		buf := make([]byte, 10)
		n, err = b.Read(buf)
		require.NoError(t, err)
		require.Equal(t, "hello", string(buf[:n]))
		require.NoError(t, a.CloseWrite())
		_, err = b.Read(buf)
		require.Equal(t, io.EOF, err)
		_, err = b.Write([]byte("bye"))
		require.NoError(t, err)
		require.NoError(t, b.Close())
		all, err := io.ReadAll(a)
		require.NoError(t, err)
		require.Equal(t, "bye", string(all))
	})
}

func TestConn(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		e := newEnds(t, rnic.Options{}, o)
		nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
			a, b := e.dial(t)
			return a, b, func() { a.Close(); b.Close() }, nil
		})
	})
}
