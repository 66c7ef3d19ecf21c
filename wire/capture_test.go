package wire_test

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// captures has the number of frames of each capture that rxe and its probing peer sent, and the
// path MTU.
var captures = []struct {
	name       string
	rxe, probe int
	mtu        int
}{
	{"cm-rping", 15, 13, 1024},
	{"nak", 1, 2, 1024},
	{"ops_atomic", 6, 7, 1024},
	{"ops_cas", 3, 3, 1024},
	{"ops_read", 13, 10, 1024},
	{"ops_read2", 6, 6, 1024},
	{"ops_readbad", 1, 2, 1024},
	{"ops_readrange", 1, 1, 1024},
	{"ops_sinv", 1, 1, 1024},
	{"ops_tver", 2, 4, 1024},
	{"ops_wpad", 3, 3, 1024},
	{"ops_write", 7, 8, 1024},
	{"perftest-rdmacm", 38, 36, 4096},
	{"perftest-tcp", 30, 10, 1024},
	{"rc-pingpong", 12, 12, 1024},
	{"rping-active", 8, 9, 1024},
	{"sidr-ud-perftest", 18, 11, 1024},
	{"ud-pingpong", 2, 1, 1024},
	{"vec_atomic", 4, 0, 1024},
	{"vec_read", 4, 0, 1024},
	{"vec_write", 4, 0, 1024},
}

var (
	rxeAddr   = netip.MustParseAddr("198.51.100.2")
	probeAddr = netip.MustParseAddr("198.51.100.1")
)

// frames returns the IP datagrams of a capture.
func frames(t testing.TB, name string) (all [][]byte) {
	t.Helper()
	f, err := os.Open(filepath.Join(goldenDir, "rxe-capture", name+".pcap"))
	require.NoError(t, err)
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	require.NoError(t, err)
	require.Equal(t, layers.LinkTypeEthernet, r.LinkType())
	for {
		b, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		require.Equal(t, "\x08\x00", string(b[12:14]), "EtherType")
		all = append(all, b[14:])
	}
}

// TestCapturesOfRxe checks that packets of the kernel are parsed, encoded to the same bytes, and
// sealed with the same ICRC, and that Check finds their identification.
func TestCapturesOfRxe(t *testing.T) {
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			for i, frame := range frames(t, c.name) {
				d := open(t, frame)
				if d.src.Addr() != rxeAddr {
					continue
				}
				n++
				var p wire.Packet
				require.Equal(t, wire.DropNone, p.Parse(d.pkt), "frame %d", i)
				require.True(t, p.LengthFits(c.mtu), "frame %d", i)

				s := wire.NewICRC(d.src, d.dst)
				again := append(encode(&p), 0, 0, 0, 0)
				s.Put(again, d.id)
				require.Equal(t, d.pkt, again, "frame %d", i)

				require.NotZero(t, d.id, "frame %d: rxe does not send identification 0", i)
				result, id := s.Check(d.pkt, d.id)
				require.Equal(t, wire.ICRCExact, result, "frame %d", i)
				require.Equal(t, d.id, id, "frame %d", i)
				result, id = s.Check(d.pkt, 0)
				require.Equal(t, wire.ICRCMember, result, "frame %d", i)
				require.Equal(t, d.id, id, "frame %d", i)
			}
			require.Equal(t, c.rxe, n)
		})
	}
}

// TestCapturesOfProbe checks that packets of the probe are valid at this level, except one with
// another transport version: invalid keys and ranges concern the queue pair.
func TestCapturesOfProbe(t *testing.T) {
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			n, versions := 0, 0
			for i, frame := range frames(t, c.name) {
				d := open(t, frame)
				if d.src.Addr() != probeAddr {
					continue
				}
				n++
				s := wire.NewICRC(d.src, d.dst)
				result, _ := s.Check(d.pkt, d.id)
				require.Equal(t, wire.ICRCExact, result, "frame %d", i)

				var p wire.Packet
				switch drop := p.Parse(d.pkt); drop {
				case wire.DropNone:
				case wire.DropBadVersion:
					require.EqualValues(t, 1, p.BTH.TVer)
					versions++
				default:
					t.Fatalf("frame %d: %v", i, drop)
				}
			}
			require.Equal(t, c.probe, n)
			require.Equal(t, c.name == "ops_tver", versions == 1)
		})
	}
}

func TestCapturesAreAllUsed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(goldenDir, "rxe-capture", "*.pcap"))
	require.NoError(t, err)
	require.Len(t, files, len(captures))
}
