package pingpong_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/pingpong"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// transcript reads a recorded handshake, in which "xN" means N repetitions.
func transcript(t *testing.T, name string) []toolstest.Message {
	return toolstest.ReadTranscript(t, name, func(what string) ([]string, error) {
		text, times, many := strings.Cut(what, " x")
		if !many {
			return []string{text + "\x00"}, nil
		}
		n, err := strconv.Atoi(times)
		return slices.Repeat([]string{text + "\x00"}, n), err
	})
}

// replay simulates the original program in a handshake and returns our messages.
func replay(t *testing.T, conn net.Conn, list []toolstest.Message) (ours []string) {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(toolstest.HangTimeout)))
	for _, m := range list {
		if m.Original {
			_, err := io.WriteString(conn, m.Text)
			require.NoError(t, err)
			continue
		}
		b := make([]byte, len(m.Text))
		_, err := io.ReadFull(conn, b)
		require.NoError(t, err)
		ours = append(ours, string(b))
	}
	return ours
}

func goldenOptions(k pingpong.Kind) pingpong.Options {
	o := pingpong.Defaults(k)
	if k == pingpong.SRQ {
		o.NumQP = 2
	}
	o.IdleTimeout = 50 * time.Millisecond // the test does not run
	return o
}

// remoteLines returns the lines that the originals print about the peer.
func remoteLines(list []toolstest.Message, n int, original bool) string {
	var b strings.Builder
	for _, m := range list {
		r, err := pingpong.ParseRecord([]byte(m.Text))
		if m.Original == original && err == nil && n > 0 {
			fmt.Fprintf(&b, "  remote address: LID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID ::ffff:%v\n", r.LID, r.QPN, r.PSN, r.GID.Addr())
			n--
		}
	}
	return b.String()
}

// TestServesOriginal replays recorded clients to our server.
func TestServesOriginal(t *testing.T) {
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			list := transcript(t, string(k)+"-original-is-client")
			o := goldenOptions(k)
			s := serve(t, o)
			conn := toolstest.Dial(t, s.At)
			ours := replay(t, conn, list)
			require.NoError(t, conn.Close()) // as the originals do
			checkOurs(t, ours, list)
			e := <-s.Ended
			require.ErrorIs(t, e.err, pingpong.ErrIdle)
			require.Contains(t, e.out, remoteLines(list, o.NumQP, true))
			require.Zero(t, s.Len())
		})
	}
}

// TestJoinsOriginal replays recorded servers to our client. Packets to the peer that they name do
// not leave the machine.
func TestJoinsOriginal(t *testing.T) {
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			list := transcript(t, string(k)+"-original-is-server")
			o := goldenOptions(k)
			o.Device = toolstest.Device(t, rnic.Options{Impair: "drop every 1st SEND_FIRST; drop every 1st SEND_MIDDLE; drop every 1st SEND_LAST; drop every 1st SEND_ONLY"})
			conn, ended := host(t, o)
			ours := replay(t, conn, list)
			require.NoError(t, conn.Close()) // as the originals do
			checkOurs(t, ours, list)
			e := <-ended
			require.ErrorIs(t, e.err, pingpong.ErrIdle)
			require.Contains(t, e.out, remoteLines(list, o.NumQP, true))
		})
	}
}

// checkOurs compares our messages with those that the original received, except for the numbers.
func checkOurs(t *testing.T, ours []string, list []toolstest.Message) {
	t.Helper()
	for _, m := range list {
		if m.Original {
			continue
		}
		want, err := pingpong.ParseRecord([]byte(m.Text))
		if err != nil || want.QPN == 0 {
			require.Equal(t, m.Text, ours[0])
		} else {
			got, err := pingpong.ParseRecord([]byte(ours[0]))
			require.NoError(t, err)
			require.NotZero(t, got.QPN)
			require.True(t, got.GID.Addr().IsLoopback())
		}
		ours = ours[1:]
	}
	require.Empty(t, ours)
}

// TestRecordGolden parses and encodes the originals' records.
func TestRecordGolden(t *testing.T) {
	const text = "0000:000011:f6c11c:00000000000000000000ffffc6336402\x00"
	r, err := pingpong.ParseRecord([]byte(text))
	require.NoError(t, err)
	require.Equal(t, pingpong.Record{QPN: 0x11, PSN: 0xf6c11c, GID: verbs.GIDFromAddr(netip.MustParseAddr("198.51.100.2"))}, r)
	require.Equal(t, text, string(r.Append(nil)))
	require.Len(t, text, pingpong.RecordLen)
	for _, k := range kinds {
		for _, role := range []string{"client", "server"} {
			for _, m := range transcript(t, string(k)+"-original-is-"+role) {
				if len(m.Text) != pingpong.RecordLen {
					require.Equal(t, "done\x00", m.Text)
					continue
				}
				r, err := pingpong.ParseRecord([]byte(m.Text))
				require.NoError(t, err)
				require.Equal(t, m.Text, string(r.Append(nil)))
			}
		}
	}
}

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := pingpong.Record{
			LID: rapid.Uint16().Draw(t, "lid"),
			QPN: rapid.Uint32Max(1<<24-1).Draw(t, "qpn"),
			PSN: rapid.Uint32Max(1<<24-1).Draw(t, "psn"),
			GID: verbs.GID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "gid")),
		}
		text := r.Append(nil)
		require.Equal(t, fmt.Sprintf("%04x:%06x:%06x:%s\x00", r.LID, r.QPN, r.PSN, hex.EncodeToString(r.GID[:])), string(text))
		back, err := pingpong.ParseRecord(text)
		require.NoError(t, err)
		require.Equal(t, r, back)
	})
}

// FuzzParseRecord checks that only the bytes that Append writes are accepted, apart from the case
// of digits.
func FuzzParseRecord(f *testing.F) {
	f.Add([]byte("0000:000011:f6c11c:00000000000000000000ffffc6336402\x00"))
	f.Add([]byte("0000:+00011:f6c1_c:00000000000000000000ffffc6336402\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := pingpong.ParseRecord(b)
		if err != nil {
			return
		}
		require.Equal(t, strings.ToLower(string(b)), string(r.Append(nil)))
	})
}

// TestInvalidClient checks that a client that sends invalid messages is dropped, and that the next one
// is served.
func TestInvalidClient(t *testing.T) {
	good := "0000:000011:f6c11c:00000000000000000000ffffc6336402\x00"
	for _, c := range []struct {
		kind  pingpong.Kind
		text  string
		kind2 error
		why   string
	}{
		{pingpong.RC, "GET / HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nConnection: close\r\n\r\n", oob.ErrProtocol, "want LID:QPN:PSN:GID"},
		{pingpong.UD, strings.Repeat("\x00", 52), oob.ErrProtocol, "want LID:QPN:PSN:GID"},
		{pingpong.RC, "0000:000000:f6c11c:00000000000000000000ffffc6336402\x00", oob.ErrProtocol, "peer sent no queue pair"},
		{pingpong.UC, "0000:000011:f6c11c:00000000000000000000000000000000\x00", oob.ErrProtocol, "start it with -g"},
		{pingpong.SRQ, strings.Repeat(good, 256), oob.ErrProtocol, "256 queue pairs, want 2; give both sides the same -q"},
		{pingpong.RC, "0000:000011:f6c11c:20010db8000000000000000000000001\x00", nil, "different families"},
		{pingpong.RC, "6.06\x00softrnic\x00\x00\x00", oob.ErrProtocol, "it runs perftest or softrnic perf"},
		{pingpong.RC, good[:20], oob.ErrTimeout, "15 of 47 bytes"},
		{pingpong.SRQ, strings.Repeat(good, 2) + good[:10], oob.ErrTimeout, "bytes within"},
		{pingpong.RC, "", oob.ErrTimeout, "0 of 5 bytes"},
		{pingpong.RC, good, oob.ErrTimeout, `read its "done": peer timed out: 0 of 5 bytes`},
	} {
		t.Run(string(c.kind)+c.why, func(t *testing.T) {
			t.Parallel()
			o := goldenOptions(c.kind)
			o.HandshakeTimeout, o.IdleTimeout, o.Iters = toolstest.ServerTimeout(c.kind2 == oob.ErrTimeout), toolstest.HangTimeout, 5
			s := serve(t, o)
			conn := toolstest.Dial(t, s.At)
			_, err := io.WriteString(conn, c.text)
			require.NoError(t, err)
			if c.kind2 != oob.ErrTimeout {
				if err := conn.(*net.TCPConn).CloseWrite(); !errors.Is(err, syscall.ENOTCONN) { // the server may have reset it
					require.NoError(t, err)
				}
			}
			err = s.Next(t)
			require.ErrorContains(t, err, c.why)
			if c.kind2 != nil {
				require.ErrorIs(t, err, c.kind2)
			}

			o.HandshakeTimeout = toolstest.HangTimeout
			o.Server, o.Port, o.Device = "127.0.0.1", s.At, toolstest.Device(t, rnic.Options{})
			client := run(toolstest.Context(t), o)
			require.NoError(t, client.err)
			require.NoError(t, (<-s.Ended).err)
		})
	}
}

// TestInvalidServer checks that a client ends when its server sends an invalid message.
func TestInvalidServer(t *testing.T) {
	for _, c := range []struct {
		text string
		hang bool // disconnects after the text
		kind error
	}{
		{"220 mail.example.org ESMTP ready when you are, whoever you are\r\n", false, oob.ErrProtocol},
		{"0000:", false, oob.ErrTimeout},
		{"0000:", true, oob.ErrPeerClosed},
	} {
		o := pingpong.Defaults(pingpong.RC)
		o.HandshakeTimeout = 300 * time.Millisecond
		o.Device = toolstest.Device(t, rnic.Options{})
		conn, ended := host(t, o)
		_, err := io.ReadFull(conn, make([]byte, pingpong.RecordLen)) // or closing would reset the connection
		require.NoError(t, err)
		_, err = io.WriteString(conn, c.text)
		require.NoError(t, err)
		if c.hang {
			require.NoError(t, conn.Close())
		}
		e := <-ended
		require.ErrorIs(t, e.err, c.kind)
	}
}
