package repotest

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// TestDocsPackets parses the blocks marked "packet": hexadecimal bytes from the IP
// header to the ICRC, and three blanks before an explanation. The bytes must be a
// recorded packet in testdata/packets, and their ICRC must be right.
func TestDocsPackets(t *testing.T) {
	golden := map[string]string{} // file name by hexadecimal bytes
	files, err := filepath.Glob(filepath.Join(root, "testdata", "packets", "*.hex"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var digits string
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") {
				digits += strings.TrimSpace(line)
			}
		}
		golden[digits] = file
	}
	parsed := 0
	for _, d := range documents(t) {
		for _, packet := range parsePacketBlocks(t, d) {
			require.Contains(t, golden, hex.EncodeToString(packet), "%s: no packet of testdata/packets has these bytes", d.path)
			require.Equal(t, byte(0x45), packet[0], "%s: not an IPv4 header without options", d.path)
			id := binary.BigEndian.Uint16(packet[4:])
			addrs := [2]netip.AddrPort{}
			for i := range addrs {
				ip, port := packet[12+4*i:], binary.BigEndian.Uint16(packet[wire.IPv4Len+2*i:])
				addrs[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip)), port)
			}
			var p wire.Packet
			require.Equal(t, wire.DropNone, p.Parse(packet[wire.IPv4Len+wire.UDPLen:]))
			s := wire.NewICRC(addrs[0], addrs[1])
			result, _ := s.Check(p.Raw, id)
			require.Equal(t, wire.ICRCExact, result)
			parsed++
		}
	}
	require.Positive(t, parsed)
}

// parsePacketBlocks returns the bytes of the packets in a document.
func parsePacketBlocks(t *testing.T, d document) (packets [][]byte) {
	t.Helper()
	last := -1 // previous line of the current block
	for _, line := range d.lines {
		if line.fence != "packet" {
			continue
		}
		digits, _, _ := strings.Cut(line.text, "   ")
		b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		require.NoError(t, err, "%s:%d", d.path, line.number)
		if line.number != last+1 {
			packets = append(packets, nil)
		}
		last = line.number
		packets[len(packets)-1] = append(packets[len(packets)-1], b...)
	}
	return packets
}
