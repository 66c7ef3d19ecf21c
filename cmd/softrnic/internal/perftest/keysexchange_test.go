package perftest

import (
	"bufio"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// script is a channel with a scripted peer.
type script struct {
	says  [][]byte
	heard [][]byte
	text  bool
}

func (s *script) write(b []byte, _ string) error {
	s.heard = append(s.heard, append([]byte(nil), b...))
	return nil
}

func (s *script) read(b []byte, doing string) error {
	if len(s.says) == 0 {
		return &oob.PeerError{Peer: "script", Op: doing, Err: oob.ErrPeerClosed}
	}
	m := s.says[0]
	s.says = s.says[1:]
	if copy(b, m) != len(m) || len(m) != len(b) {
		return errors.New("the message has another length")
	}
	return nil
}

func (s *script) await(b []byte, doing string) error { return s.read(b, doing) }
func (s *script) binary() bool                       { return !s.text }
func (s *script) peer() string                       { return "script" }
func (s *script) close() error                       { return nil }

// TestOriginalOverRDMA replays the messages of an original over a connection of RDMA CM.
func TestOriginalOverRDMA(t *testing.T) {
	f, err := os.Open("testdata/send_bw-rdma_cm.txt")
	require.NoError(t, err)
	defer f.Close()
	s := &script{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "#") {
			b, err := hex.DecodeString(lines.Text())
			require.NoError(t, err)
			s.says = append(s.says, b)
		}
	}
	recorded := len(s.says)
	original := s.says[6]
	talk := &handshake{channel: s}
	a, err := talk.negotiate(verbs.MTU4096, false)
	require.NoError(t, err)
	require.Equal(t, negotiated{"6.06", 4096, 64, verbs.MTU4096}, a)
	mine := Keys{OutReads: 1, QPN: 5, PSN: 6, VAddr: 7}
	for _, doing := range []string{"before connecting", "after connecting"} {
		theirs, err := talk.exchangeKeys(mine, doing)
		require.NoError(t, err)
		require.Equal(t, Keys{}, theirs)
	}
	want := Keys{OutReads: 1, QPN: 0x12, PSN: 0xd82a87, VAddr: 0x561040e8a000, GID: verbs.GIDFromAddr(netip.MustParseAddr("198.51.100.2")), GIDIndex: 1}
	for range recorded - 6 {
		theirs, err := talk.exchangeKeys(mine, "wait")
		require.NoError(t, err)
		require.Equal(t, want, theirs)
		require.Equal(t, original, theirs.AppendBinary(nil))
	}
	require.Empty(t, s.says)
	require.Len(t, s.heard, recorded)
	for i, n := range []int{16, 4, 4, 2, 56, 56, 56} {
		require.Len(t, s.heard[i], n)
	}
	_, err = talk.exchangeKeys(mine, "wait")
	require.ErrorIs(t, err, oob.ErrPeerClosed)
}

// TestNewerOriginalOverRDMA checks that from 6.29 on keys have eight more bytes there, in the
// layout of perftest's struct pingpong_dest (src/perftest_resources.h at 26.04.17), whatever the
// version of the peer.
func TestNewerOriginalOverRDMA(t *testing.T) {
	theirs, err := hex.DecodeString("00000000000000010000001200d82a8700000077000000000000561040e8a000" + "0000561040e8b000" +
		"00000000000000000000ffffc6336402" + "0000000500000001")
	require.NoError(t, err)
	s := &script{says: [][]byte{[]byte("6.29" + strings.Repeat("\x00", 12)), {0, 0, 16, 0}, {0, 0, 0, 64}, []byte("5\x00"), theirs}}
	talk := &handshake{channel: s}
	a, err := talk.negotiate(verbs.MTU4096, false)
	require.NoError(t, err)
	require.Equal(t, "6.29", a.version)
	mine := Keys{OutReads: 1, QPN: 5, PSN: 6, VAddr: 7, GID: verbs.GIDFromAddr(netip.MustParseAddr("198.51.100.1")), SRQN: 8, GIDIndex: 9}
	k, err := talk.exchangeKeys(mine, "wait")
	require.NoError(t, err)
	require.Equal(t, Keys{OutReads: 1, QPN: 0x12, PSN: 0xd82a87, RKey: 0x77, VAddr: 0x561040e8a000,
		GID: verbs.GIDFromAddr(netip.MustParseAddr("198.51.100.2")), SRQN: 5, GIDIndex: 1}, k)
	require.Equal(t, "00000000000000010000000500000006000000000000000000000000000000070000000000000000"+
		"00000000000000000000ffffc6336401"+"0000000800000009", hex.EncodeToString(s.heard[4]))
	require.Equal(t, KeysLongLen, talk.keysLen())

	s = &script{says: [][]byte{[]byte("6.28" + strings.Repeat("\x00", 12)), {0, 0, 16, 0}, {0, 0, 0, 64}, []byte("5\x00")}}
	talk.channel, talk.longKeys = s, false
	_, err = talk.negotiate(verbs.MTU4096, false)
	require.NoError(t, err)
	require.Equal(t, KeysBinaryLen, talk.keysLen())
	s.text = true
	require.Equal(t, KeysTextLen, talk.keysLen(), "over TCP nothing has changed")
}

// TestClientFirst checks that the client sends before it receives.
func TestClientFirst(t *testing.T) {
	s := &script{text: true}
	_, err := (&handshake{channel: s, client: true}).negotiate(verbs.MTU1024, false)
	require.ErrorIs(t, err, oob.ErrPeerClosed)
	require.Len(t, s.heard, 1)
	s = &script{text: true}
	_, err = (&handshake{channel: s}).negotiate(verbs.MTU1024, false)
	require.ErrorIs(t, err, oob.ErrPeerClosed)
	require.Empty(t, s.heard)
}

// TestAwaitBesideClose reads ahead from a channel that is closed before the read starts, as at the
// end of a test.
func TestAwaitBesideClose(t *testing.T) {
	dev := toolstest.Device(t, rnic.Options{})
	o := Defaults(Test{Write, Latency})
	c, err := newCMChannel(toolstest.Context(t), &rdmacm.Endpoint{Device: dev}, &plan{Options: &o})
	require.NoError(t, err)
	require.NoError(t, c.free())
	require.NoError(t, c.free())
	require.Error(t, c.await(make([]byte, KeysBinaryLen), "wait for its end of the test"))
}
