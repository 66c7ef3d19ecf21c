package datacutter

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"
)

func TestPipeIsAConn(t *testing.T) {
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
		a, b := newPipe()
		return a, b, func() { a.Close(); b.Close() }, nil
	})
}

func TestPipeDeliversWhatWasWrittenBeforeClose(t *testing.T) {
	a, b := newPipe()
	n, err := a.Write(make([]byte, pipeSize)) // fits into the buffer
	require.NoError(t, err)
	require.Equal(t, pipeSize, n)
	require.NoError(t, a.Close())
	got, err := io.ReadAll(b)
	require.NoError(t, err)
	require.Len(t, got, pipeSize)
	_, err = b.Write([]byte{1})
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.NoError(t, b.Close())
}
