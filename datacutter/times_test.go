package datacutter

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestGrace checks that a peer that does not read delays the end of a failed run by a second.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := net.Pipe()
		defer peer.Close()
		begin := time.Now()
		(&link{ctx: t.Context(), conn: conn, grace: defaultGrace}).closeWithAbort("boom")
		require.Equal(t, time.Second, time.Since(begin))
	})
}

// TestSilentStranger checks that a connection without hello is rejected after 10 s.
func TestSilentStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := net.Pipe()
		defer peer.Close()
		r := &run{Node: &Node{grace: defaultGrace}, ctx: t.Context()}
		begin := time.Now()
		go r.handleHello(conn)
		f, err := newFrameReader(peer, 0).nextFrame()
		require.NoError(t, err)
		require.Equal(t, kindAbort, f.kind)
		require.Equal(t, "no hello received", string(f.payload))
		require.Equal(t, 10*time.Second, time.Since(begin))
	})
}
