package repotest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/sim/scenario"
	"github.com/softrnic/softrnic/wire"
)

var update = flag.Bool("update", false, "write the output of the scenarios in the documents anew")

var scenarioRE = regexp.MustCompile("(?s)\n```scenario\n(.*?\n)```\n")

// TestDocsScenarios runs the blocks marked "scenario" in the documents, and
// compares what they print.
func TestDocsScenarios(t *testing.T) {
	ran := 0
	for _, d := range documents(t) {
		file := filepath.Join(root, d.path)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range scenarioRE.FindAllSubmatch(text, -1) {
			ran++
			got, err := scenario.Run(string(m[1]))
			require.NoError(t, err, "%s, so far:\n%s", d.path, got)
			require.Contains(t, got, "\nexpect ", "%s: a scenario that expects nothing", d.path)
			if *update {
				text = bytes.Replace(text, m[1], []byte(got), 1)
				continue
			}
			require.Equal(t, string(m[1]), got, d.path)
		}
		if *update {
			require.NoError(t, os.WriteFile(file, text, 0o644))
		}
	}
	require.GreaterOrEqual(t, ran, 4)
}

// TestDocsPackets parses the blocks marked "packet": bytes from the IP header
// to the ICRC, a few columns, and behind three blanks what they mean. They are
// packets of others, from testdata/packets.
func TestDocsPackets(t *testing.T) {
	golden := map[string]string{} // file by its bytes
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
		for _, whole := range packetBlocks(t, d) {
			require.Contains(t, golden, hex.EncodeToString(whole), "%s: no golden packet has these bytes", d.path)
			require.Equal(t, byte(0x45), whole[0], "IPv4 without options")
			id := binary.BigEndian.Uint16(whole[4:])
			ends := [2]netip.AddrPort{}
			for i := range ends {
				ip, port := whole[12+4*i:], binary.BigEndian.Uint16(whole[wire.IPv4Len+2*i:])
				ends[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip)), port)
			}
			var p wire.Packet
			require.Equal(t, wire.DropNone, p.Parse(whole[wire.IPv4Len+wire.UDPLen:]))
			s := wire.NewSealer(ends[0], ends[1])
			result, _ := s.Check(p.Raw, id)
			require.Equal(t, wire.ICRCExact, result)
			parsed++
		}
	}
	require.Positive(t, parsed)
}

// packetBlocks returns the bytes of a document's packets.
func packetBlocks(t *testing.T, d document) (packets [][]byte) {
	t.Helper()
	last := -1 // line of the block in progress
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
