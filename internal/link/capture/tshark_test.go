package capture

import (
	"bytes"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// TestTshark has Wireshark's dissector check a packet of every opcode.
func TestTshark(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed: the dissector's verdict on our captures is missing")
	}
	for _, ends := range [][2]netip.AddrPort{{addr4A, addr4B}, {addr6A, addr6B}} {
		path := filepath.Join(t.TempDir(), "all.pcapng")
		f, err := Create(path, nil)
		require.NoError(t, err)
		w := connect(t, ends[0], ends[1])
		w.tap.Add(f)
		packets := w.exchange(t)
		require.NoError(t, f.Close())

		cmd := exec.Command(tshark, "-r", path, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-T", "fields", "-E", "separator=|",
			"-e", "infiniband.bth.opcode", "-e", "infiniband.bth.destqp", "-e", "infiniband.invariant.crc",
			"-e", "_ws.malformed", "-e", "_ws.expert.message", "-e", "frame.protocols", "-e", "ip.checksum.status", "-e", "udp.checksum.status")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, "%s", &stderr)
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		require.Len(t, lines, packets, "%s", &stderr)
		line := 0
		for range 2 { // directions
			for code := range 256 {
				if !wire.Opcode(code).Info().Valid {
					continue
				}
				for range 2 {
					name := fmt.Sprintf("%v: %s", wire.Opcode(code), lines[line])
					fields := strings.Split(lines[line], "|")
					require.Equal(t, fmt.Sprint(code), fields[0], name)
					require.Equal(t, "0x000007", fields[1], name)
					// tshark shows no ICRC of CNPs and manufacturers' opcodes, and before 4.4 of the opcodes of annex A19.
					if op := wire.Opcode(code); op != wire.RCFlush && op != wire.RCAtomicWrite {
						require.Equal(t, code < 0x80, fields[2] != "", name)
					}
					require.Empty(t, fields[3], name)
					require.Empty(t, fields[4], name)
					require.Contains(t, fields[5], ":udp:infiniband", name)
					if ends[0].Addr().Is4() {
						require.Equal(t, "1", fields[6], name)
					} else {
						require.Equal(t, "1", fields[7], name)
					}
					line++
				}
			}
		}
	}
}
