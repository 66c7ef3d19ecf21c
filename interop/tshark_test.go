//go:build interop && linux

package interop

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
	"github.com/softrnic/softrnic/interop/peer"
	"github.com/softrnic/softrnic/interop/tally"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// unused are opcodes that no test sends: the cable marks no congestion, an invalidation needs a
// memory window, which older versions of pyverbs cannot bind, and FLUSH and ATOMIC WRITE a newer kernel.
// RDMA over UD (UDX) exists between softrnic adapters only.
var unused = []wire.Opcode{wire.CNP, wire.RCSendLastInv, wire.RCSendOnlyInv, wire.RCFlush, wire.RCAtomicWrite}

// TestTshark checks that Wireshark parses all packets of softrnic to Linux, which are of every
// opcode and of every message of connection management.
func TestTshark(t *testing.T) {
	g := lab.Need(t)
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed: the dissector's verdict on what is on the cable is missing")
	}
	capture, err := lab.StartCapture()
	require.NoError(t, err)
	for i, k := range kinds {
		f := families[i]
		t.Run(k.String()+", RC", func(t *testing.T) { everyReliable(t, g, k, f) })
		for _, typ := range []verbs.QPType{verbs.UC, verbs.UD} {
			t.Run(k.String()+", "+typ.String(), func(t *testing.T) { everyUnreliable(t, g, k, f, typ) })
		}
		for _, p := range cmPrograms {
			if p.name != "ucmatose" {
				require.NoError(t, p.runBoth(t, g, k.b == "softrnic", f, "", ""))
			}
		}
	}
	frames, err := capture.Stop()
	require.NoError(t, err)

	sum := tally.New(1024)
	for _, frame := range frames {
		if err := sum.Add(frame.Data); !errors.Is(err, tally.ErrNotRoCE) {
			require.NoError(t, err)
		}
	}
	seen := make(map[wire.Opcode]int)
	packets := 0
	for _, f := range families {
		require.Zero(t, sum.From(f.host).BadICRC)
		for op, n := range sum.From(f.host).Opcodes {
			seen[op] += n
		}
		packets += sum.From(f.host).Packets
	}
	for code := range 256 {
		if op := wire.Opcode(code); op.Info().Valid && op.Info().Class != wire.ClassUDX && op != wire.RCSelectiveAck && !slices.Contains(unused, op) {
			require.NotZero(t, seen[op], "no %v was sent, only %v", op, slices.Sorted(maps.Keys(seen)))
		}
	}

	path := filepath.Join(t.TempDir(), "cable.pcapng")
	require.NoError(t, lab.WriteFrames(path, frames))
	cmd := exec.Command(tshark, "-r", path, "-Y", fmt.Sprintf("udp.dstport == 4791 && (ip.src == %v || ipv6.src == %v)", lab.HostIPv4, lab.HostIPv6), "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|",
		"-e", "frame.number", "-e", "frame.protocols", "-e", "_ws.malformed", "-e", "_ws.expert.message", "-e", "infiniband.mad.attributeid")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	attributes := make(map[string]int)
	lines := slices.Collect(strings.Lines(string(out)))
	require.Len(t, lines, packets)
	for _, line := range lines {
		values := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		require.Len(t, values, 5, line)
		require.Contains(t, values[1], ":udp:infiniband", line)
		require.Empty(t, values[2]+values[3], line)
		attributes[values[4]]++
	}
	for _, attr := range []string{"0x0010", "0x0013", "0x0014", "0x0015", "0x0016", "0x0017", "0x0018"} { // REQ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP
		require.NotZero(t, attributes[attr], "no message %s", attr)
	}
}

// everyReliable executes every operation with one, two and three packets.
func everyReliable(t *testing.T, g *lab.Guest, k kind, f family) {
	a, b := openPair(t, g, k, f, 1, peer.Options{}, peer.Options{}, verbs.ConnectOptions{MTU: verbs.MTU1024})
	checks := 0
	for _, size := range []int{100, 1500, 3000} {
		transfer(t, a, b, size, &checks)
	}
	for _, op := range []verbs.WROpcode{verbs.WRAtomicFetchAdd, verbs.WRAtomicCmpSwap} {
		require.NoError(t, a.PostSend(0, verbs.SendWR{Opcode: op, Flags: verbs.SendSignaled, SGList: a.SGE(0, 8), RemoteAddr: b.Addr(0), RKey: b.RKey()}))
		require.NoError(t, poll(t, a, 1)[0].Err())
	}
}

// everyUnreliable sends a message of each kind with one, two and three packets.
func everyUnreliable(t *testing.T, g *lab.Guest, k kind, f family, typ verbs.QPType) {
	o := peer.Options{Type: typ}
	a, b := openPair(t, g, k, f, 1, o, o, verbs.ConnectOptions{MTU: verbs.MTU1024})
	sizes, ops := []int{100, 1500, 3000}, []verbs.WROpcode{verbs.WRSend, verbs.WRSendWithImm, verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm}
	if typ == verbs.UD {
		sizes, ops = sizes[:1], ops[:2]
	}
	for _, size := range sizes {
		for _, op := range ops {
			receives := op != verbs.WRRDMAWrite
			if receives {
				require.NoError(t, b.PostRecv(0, 1, b.SGE(0, 40+size)))
			}
			require.NoError(t, a.PostSend(0, verbs.SendWR{Opcode: op, Flags: verbs.SendSignaled, SGList: a.SGE(0, size), RemoteAddr: b.Addr(0), RKey: b.RKey()}))
			require.NoError(t, poll(t, a, 1)[0].Err())
			if receives {
				require.NoError(t, poll(t, b, 1)[0].Err())
			}
		}
	}
}
