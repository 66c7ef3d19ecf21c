package mad_test

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/mad"
)

// captures of Linux 6.1 rdma_rxe, see the README there. Frames from .2 were
// built by the kernel, those from .1 by a probe that the kernel accepted.
const captures = "../../testdata/packets/rxe-capture"

var linux = netip.MustParseAddr("198.51.100.2")

// datagrams returns the management datagrams of a capture, and whether Linux sent them.
func datagrams(t testing.TB, name string) (all [][]byte, byLinux []bool) {
	t.Helper()
	f, err := os.Open(filepath.Join(captures, name+".pcap"))
	require.NoError(t, err)
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	require.NoError(t, err)
	for {
		b, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return all, byLinux
		}
		require.NoError(t, err)
		ip := b[14:]
		var p wire.Packet
		if p.Parse(ip[wire.IPv4Len+wire.UDPLen:]) != wire.DropNone || p.BTH.DestQPN != wire.QPNGSI {
			continue
		}
		require.Equal(t, wire.DETH{QKey: wire.QKeyGSI, SrcQPN: wire.QPNGSI}, p.DETH())
		all = append(all, p.Payload)
		src, _ := netip.AddrFromSlice(ip[12:16])
		byLinux = append(byLinux, src == linux)
	}
}

// TestCaptures checks that every management datagram of the captures is decoded, and encoded to the
// same bytes.
func TestCaptures(t *testing.T) {
	for name, want := range map[string]string{
		"cm-rping":         "REQ REP RTU DREQ",
		"rping-active":     "REQ REP RTU DREQ DREP",
		"perftest-rdmacm":  "REQ REP RTU REQ REP RTU DREQ DREP DREQ DREP",
		"sidr-ud-perftest": "REQ REP RTU SIDR_REQ SIDR_REQ SIDR_REQ SIDR_REQ SIDR_REQ SIDR_REQ",
	} {
		t.Run(name, func(t *testing.T) {
			all, _ := datagrams(t, name)
			got := ""
			for _, b := range all {
				h, body, drop := mad.Parse(b)
				require.Equal(t, mad.DropNone, drop)
				got += h.Attr.String() + " "
				var again [mad.Size]byte
				mad.Put(&again, h, body)
				require.Equal(t, b, again[:], "%v", h.Attr)
			}
			t.Log(got)
			require.Equal(t, want+" ", got)
		})
	}
}
