package perftest_test

import (
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/perftest"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// transcript reads a recorded handshake.
func transcript(t *testing.T, name string) []toolstest.Message {
	return toolstest.ReadTranscript(t, name, func(quoted string) ([]string, error) {
		text, err := strconv.Unquote(quoted)
		return []string{text}, err
	})
}

// replay simulates the original program until the connection is closed, and returns the number of
// messages sent.
func replay(t *testing.T, conn net.Conn, list []toolstest.Message) (spoken int) {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(toolstest.HangTimeout)))
	keys := ""
	for i, m := range list {
		if m.Original {
			if _, err := io.WriteString(conn, m.Text); err != nil {
				return i
			}
			continue
		}
		b := make([]byte, len(m.Text))
		if _, err := io.ReadFull(conn, b); err != nil {
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "message %d", i)
			return i
		}
		switch {
		case len(b) == perftest.KeysTextLen:
			if keys == "" {
				keys = string(b)
			}
			require.Equal(t, keys, string(b), "keys stay the same")
			checkKeys(t, m.Text, keys)
		case len(b) == 8: // part of a report, different in each run
		case strings.HasPrefix(m.Text, "6.06\x00"): // an original reads up to the NUL
			require.Equal(t, "6.06\x00softrnic\x00\x00\x00", string(b), "message %d", i)
		default:
			require.Equal(t, m.Text, string(b), "message %d", i)
		}
	}
	return len(list)
}

// checkKeys compares our keys with those that an original has accepted.
func checkKeys(t *testing.T, recorded, ours string) {
	t.Helper()
	want, err := perftest.ParseKeysText([]byte(recorded))
	require.NoError(t, err)
	got, err := perftest.ParseKeysText([]byte(ours))
	require.NoError(t, err)
	require.Equal(t, want.LID, got.LID)
	require.Equal(t, want.OutReads, got.OutReads)
	require.Equal(t, want.SRQN, got.SRQN)
	require.True(t, got.GID.Addr().IsLoopback())
	require.NotZero(t, got.QPN)
	require.NotZero(t, got.VAddr)
}

// runs is the number of the message in a recorded handshake after which the test runs: no report or
// final message comes before.
var runs = map[string]int{
	"send_bw": 16, "send_lat": 16, "write_bw": 14, "write_lat": 16, "read_bw": 14, "read_lat": 16, "atomic_bw": 14, "atomic_lat": 16,
}

// TestServesOriginal replays recorded clients to our server: the whole handshake if the server
// sleeps during the test, otherwise up to the messages, which are not sent.
func TestServesOriginal(t *testing.T) {
	for _, test := range perftest.Tests {
		t.Run(test.String(), func(t *testing.T) {
			t.Parallel()
			list := transcript(t, test.String()+"-original-is-client")
			o := defaults(test.String())
			sleeps := test.Metric == perftest.Bandwidth && test.Verb != perftest.Send || test == (perftest.Test{Verb: perftest.Read, Metric: perftest.Latency}) ||
				test == (perftest.Test{Verb: perftest.Atomic, Metric: perftest.Latency})
			o.Iters, o.IdleTimeout = 5, 100*time.Millisecond
			if sleeps {
				o.IdleTimeout = toolstest.HangTimeout
			}
			s := serve(t, o)
			conn := toolstest.Dial(t, s.At)
			spoken := replay(t, conn, list)
			conn.Close()
			e := <-s.Ended
			require.Zero(t, s.Len(), "it was sent away")
			require.Contains(t, e.out, "remote address: LID 0000 QPN 0x0")
			if sleeps {
				require.NoError(t, e.err)
				require.Equal(t, len(list), spoken)
				if test.Metric == perftest.Bandwidth {
					require.EqualValues(t, 5, e.Bandwidth[0].Iters)
					require.Positive(t, e.Bandwidth[0].Average)
				}
				return
			}
			require.Error(t, e.err)
			require.GreaterOrEqual(t, spoken, runs[test.String()])
		})
	}
}

// TestJoinsOriginal replays recorded servers to our client, up to the messages. Packets to the peer
// that they name do not leave the machine.
func TestJoinsOriginal(t *testing.T) {
	for _, test := range perftest.Tests {
		t.Run(test.String(), func(t *testing.T) {
			t.Parallel()
			list := transcript(t, test.String()+"-original-is-server")
			o := defaults(test.String())
			o.Iters, o.IdleTimeout, o.QPTimeout = 5, 100*time.Millisecond, 1
			o.Device = toolstest.Device(t, rnic.Options{Impair: "loss 100%"})
			conn, ended := host(t, o)
			spoken := replay(t, conn, list)
			e := <-ended
			require.Error(t, e.err)
			require.GreaterOrEqual(t, spoken, runs[test.String()])
			require.Contains(t, e.out, "remote address: LID 0000 QPN 0x0")
		})
	}
}

// TestKeysGolden parses and encodes the keys of originals.
func TestKeysGolden(t *testing.T) {
	const text = "0000:0001:000019:f33c5c:00000000:00005588eeee8000:00:00:00:00:00:00:00:00:00:00:ff:ff:c6:33:64:02:00000000:\x00"
	k, err := perftest.ParseKeysText([]byte(text))
	require.NoError(t, err)
	require.Equal(t, perftest.Keys{OutReads: 1, QPN: 0x19, PSN: 0xf33c5c, VAddr: 0x5588eeee8000,
		GID: verbs.GIDFromAddr(netip.MustParseAddr("198.51.100.2"))}, k)
	require.Equal(t, text, string(k.AppendText(nil)))
	n := 0
	for _, test := range perftest.Tests {
		for _, role := range []string{"client", "server"} {
			for _, m := range transcript(t, test.String()+"-original-is-"+role) {
				if len(m.Text) != perftest.KeysTextLen {
					continue
				}
				n++
				k, err := perftest.ParseKeysText([]byte(m.Text))
				require.NoError(t, err)
				require.Equal(t, m.Text, string(k.AppendText(nil)))
			}
		}
	}
	require.Greater(t, n, 100)
}

func drawKeys(t *rapid.T) perftest.Keys {
	return perftest.Keys{
		LID: rapid.Uint16().Draw(t, "lid"), OutReads: rapid.Uint32Max(0xffff).Draw(t, "reads"),
		QPN: rapid.Uint32Max(1<<24-1).Draw(t, "qpn"), PSN: rapid.Uint32Max(1<<24-1).Draw(t, "psn"),
		RKey: rapid.Uint32().Draw(t, "rkey"), VAddr: rapid.Uint64().Draw(t, "vaddr"),
		GID: verbs.GID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "gid")), SRQN: rapid.Uint32().Draw(t, "srqn"),
	}
}

func TestKeysRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKeys(t)
		text := k.AppendText(nil)
		require.Len(t, text, perftest.KeysTextLen)
		back, err := perftest.ParseKeysText(text)
		require.NoError(t, err)
		require.Equal(t, k, back)
		k.GIDIndex = rapid.Uint32().Draw(t, "index")
		binary := k.AppendBinary(nil)
		require.Len(t, binary, perftest.KeysBinaryLen)
		back, err = perftest.ParseKeysBinary(binary)
		require.NoError(t, err)
		require.Equal(t, k, back)
		long := k.AppendLong(nil)
		require.Len(t, long, perftest.KeysLongLen)
		back, err = perftest.ParseKeysBinary(long)
		require.NoError(t, err)
		require.Equal(t, k, back)
	})
}

// FuzzParseKeys checks that only the bytes that AppendText writes are accepted, apart from the case
// of digits.
func FuzzParseKeys(f *testing.F) {
	f.Add([]byte("0000:0001:000019:f33c5c:00000000:00005588eeee8000:00:00:00:00:00:00:00:00:00:00:ff:ff:c6:33:64:02:00000000:\x00"))
	f.Add([]byte("0000:0001:000019:f33c5c:00000000:00005588eeee8000:00:00:00:00:00:00:00:00:00:00:ff:ff:c6:33:64:02:000000000\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, err := perftest.ParseKeysText(b); err == nil {
			require.Equal(t, strings.ToLower(string(b)), string(k.AppendText(nil)))
		}
		if k, err := perftest.ParseKeysBinary(b); err == nil {
			require.Contains(t, []int{len(k.AppendBinary(nil)), len(k.AppendLong(nil))}, len(b))
		}
	})
}

// TestInvalidClient checks that a client that sends an invalid message at any step is dropped, and that
// the next one is served.
func TestInvalidClient(t *testing.T) {
	version := "6.06" + strings.Repeat("\x00", 12)
	start := version + "\x00\x00\x10\x00" + "\x00\x00\x00\x40"
	keys := "0000:0001:000019:f33c5c:00000000:00005588eeee8000:00:00:00:00:00:00:00:00:00:00:ff:ff:c6:33:64:02:00000000:\x00"
	for _, c := range []struct {
		name, text string
		kind       error
		why        string
	}{
		{"HTTP", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", oob.ErrProtocol, "is not a version of perftest"},
		{"text", "six point zero six", oob.ErrProtocol, "is not a version of perftest"},
		{"old", "5.33" + strings.Repeat("\x00", 12), perftest.ErrVersion, "version 5.33; start a newer one there"},
		{"silence", "", oob.ErrTimeout, "0 of 16 bytes"},
		{"half a version", "6.0", oob.ErrTimeout, "3 of 16 bytes"},
		{"a version and no more", version, oob.ErrTimeout, "exchange page sizes"},
		{"huge pages", version + "\x7f\x00\x00\x00" + "\x00\x00\x00\x40", oob.ErrProtocol, "invalid sizes"},
		{"huge lines", version + "\x00\x00\x10\x00" + "\x00\x00\x20\x00", oob.ErrProtocol, "invalid sizes"},
		{"MTU 9", start + "9\x00", oob.ErrProtocol, "want 1 to 5"},
		{"no keys", start + "5\x00" + strings.Repeat(":", 108), oob.ErrProtocol, "want LID:reads:QPN"},
		{"keys without GID", start + "5\x00" + keys[:50] + "00000000\x00", oob.ErrTimeout, "59 of 108 bytes"},
		{"zero GID", start + "5\x00" + keys[:50] + strings.Repeat("00:", 16) + "00000000:\x00", oob.ErrProtocol, "start it with -x"},
		{"other family", start + "5\x00" + keys[:50] + "20:01:0d:b8:" + strings.Repeat("00:", 11) + "01:00000000:\x00", verbs.ErrInvalid, "different families"},
		{"no queue pair", start + "5\x00" + strings.Replace(keys, "000019", "000000", 1), verbs.ErrInvalid, "queue pair number"},
		{"silence later", start + "5\x00" + keys, oob.ErrTimeout, "wait for each other"},
		{"other keys later", start + "5\x00" + keys + strings.Repeat("x", 108), oob.ErrProtocol, "want LID:reads:QPN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := defaults("send_bw")
			o.HandshakeTimeout = toolstest.ServerTimeout(c.kind == oob.ErrTimeout)
			s := serve(t, o)
			conn := toolstest.Dial(t, s.At)
			_, err := io.WriteString(conn, c.text)
			require.NoError(t, err)
			err = s.Next(t)
			require.ErrorIs(t, err, c.kind)
			require.ErrorContains(t, err, c.why)

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
		kind error
	}{
		{"220 mail.example.org ESMTP", oob.ErrProtocol},
		{"4.20" + strings.Repeat("\x00", 12), perftest.ErrVersion},
		{"6.06", oob.ErrTimeout},
	} {
		o := defaults("write_bw")
		o.HandshakeTimeout = 300 * time.Millisecond
		o.Device = toolstest.Device(t, rnic.Options{})
		conn, ended := host(t, o)
		_, err := io.WriteString(conn, c.text)
		require.NoError(t, err)
		require.ErrorIs(t, (<-ended).err, c.kind)
	}
}

// TestSleepingServerGivesUp checks that a sleeping server drops a connected client that does
// nothing.
func TestSleepingServerGivesUp(t *testing.T) {
	list := transcript(t, "read_lat-original-is-client")
	o := defaults("read_lat")
	o.IdleTimeout = 100 * time.Millisecond
	s := serve(t, o)
	conn := toolstest.Dial(t, s.At)
	require.Equal(t, runs["read_lat"], replay(t, conn, list[:runs["read_lat"]]))
	e := <-s.Ended
	require.ErrorContains(t, e.err, "wait for its end of the test: no progress")
}

// TestOutput compares the output with that of the originals.
func TestOutput(t *testing.T) {
	gid := `GID: 00:00:00:00:00:00:00:00:00:00:255:255:127:\d+:\d+:\d+`
	line := strings.Repeat("-", 87)
	waiting := "\n************************************\n* Waiting for client to connect... *\n************************************\n"
	banner := func(title, middle, tail string) string {
		return line + "\n                    " + title + `
 Dual-port       : OFF\t\tDevice         : \w+
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 PCIe relax order: OFF\t\tLock-free      : OFF
 ibv_wr\* API     : OFF\t\tUsing Enhanced Reorder      : OFF
` + middle + ` Mtu             : 4096\[B\]
 Link type       : Ethernet
 GID index       : 0
` + tail + ` rdma_cm QPs\t : OFF
 Data ex. method : Ethernet
` + line + "\n"
	}
	address := func(more string) string {
		one := func(which string) string {
			return " " + which + ` address: LID 0000 QPN 0x[0-9a-f]{4,6} PSN 0x[0-9a-f]{4,6}` + more + "\n " + gid + "\n"
		}
		return one("local") + one("remote")
	}
	for _, c := range []struct {
		name           string
		server, client string
	}{
		{"send_bw",
			regexp.QuoteMeta(waiting) + banner("Send BW Test", " RX depth        : 50\n CQ Moderation   : 1\n CQE Poll Batch  : 16\n", ` Max inline data : 0\[B\]`+"\n") + address("") +
				line + "\n #bytes     #iterations    BW peak\\[MiB/sec\\]    BW average\\[MiB/sec\\]   MsgRate\\[Mpps\\]\n" +
				` 65536      50               0.00               \d+\.\d\d *\t\t     \d\.\d{6}` + "\n" + line + "\n",
			banner("Send BW Test", " TX depth        : 50\n CQ Moderation   : 1\n CQE Poll Batch  : 16\n", ` Max inline data : 0\[B\]`+"\n") + address("") +
				line + "\n #bytes     #iterations    BW peak\\[MiB/sec\\]    BW average\\[MiB/sec\\]   MsgRate\\[Mpps\\]\n" +
				` 65536      50               \d+\.\d\d +\d+\.\d\d *\t\t     \d\.\d{6}` + "\n" + line + "\n"},
		{"write_lat", "",
			banner("RDMA_Write Latency Test", " TX depth        : 1\n", ` Max inline data : 220\[B\]`+"\n") + address(` RKey 0x[0-9a-f]{6,8} VAddr 0x[0-9a-f]{14,16}`) +
				line + "\n #bytes #iterations    t_min\\[usec\\]    t_max\\[usec\\]  t_typical\\[usec\\]    t_avg\\[usec\\]    t_stdev\\[usec\\]   99% percentile\\[usec\\]   99.9% percentile\\[usec\\] \n" +
				` 2       50          \d+\.\d\d +\d+\.\d\d +\d+\.\d\d +\t +\d+\.\d\d +\t\d+\.\d\d *\t\t\d+\.\d\d *\t\t\d+\.\d\d *` + "\n" + line + "\n"},
		{"read_lat",
			regexp.QuoteMeta(waiting) + banner("RDMA_Read Latency Test", "", " Outstand reads  : 128\n") + address(` OUT 0x80 RKey 0x[0-9a-f]{6,8} VAddr 0x[0-9a-f]{14,16}`) + line + "\n", ""},
		{"atomic_bw", "",
			banner("Atomic FETCH_AND_ADD BW Test", " TX depth        : 50\n CQ Moderation   : 50\n CQE Poll Batch  : 16\n", " Outstand reads  : 128\n") + address("") +
				line + "\n #bytes     #iterations    BW peak\\[MiB/sec\\]    BW average\\[MiB/sec\\]   MsgRate\\[Mpps\\]\n" +
				` 8          50               \d+\.\d\d +\d+\.\d\d *\t\t     \d+\.\d{6}` + "\n" + line + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := defaults(c.name)
			if racesync.Enabled && c.name == "write_lat" {
				t.Skip("the detector knows no memory that is polled by the byte")
			}
			server, client := runBoth(t, o, o)
			require.NoError(t, server.err)
			require.NoError(t, client.err)
			if c.server != "" {
				require.Regexp(t, `\A`+c.server+`\z`, server.out)
			}
			if c.client != "" {
				require.Regexp(t, `\A`+c.client+`\z`, client.out)
			}
		})
	}
}
