//go:build interop && linux

package interop

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
)

// sentPattern matches the statistics of the faults of packets from the guest in "tc -s qdisc".
var sentPattern = regexp.MustCompile(`(?m)^qdisc netem 2: .*\n Sent \d+ bytes (\d+) pkt \(dropped (\d+),`)

// sentFromGuest returns the number of RoCE packets that the guest has sent since SetFaults, with those
// that the faults have dropped, and the number of these.
func sentFromGuest(ctx context.Context, t *testing.T, g *lab.Guest) (sent, dropped float64) {
	t.Helper()
	out, err := g.Output(ctx, "tc", "-s", "qdisc", "show")
	require.NoError(t, err)
	m := sentPattern.FindStringSubmatch(out)
	require.NotNil(t, m, out)
	passed, err := strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	dropped, err = strconv.ParseFloat(m[2], 64)
	require.NoError(t, err)
	return passed + dropped, dropped
}

// TestLossBesideRxe writes from the guest to softrnic on the host while packets are lost: by softrnic, and by
// rxe with the same program. softrnic sends the lost packets again, and rxe all packets from the first
// lost one on, so that softrnic sends fewer packets again for each lost one.
func TestLossBesideRxe(t *testing.T) {
	g := lab.Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	host := lab.Binary(t, "softrnic")
	program, err := os.ReadFile(host)
	require.NoError(t, err)
	const path = "/lab/softrnic"
	require.NoError(t, g.WriteFile(ctx, path, program))
	require.NoError(t, g.SetMTU(ctx, lab.LargeMTU))
	defer g.SetFaults(context.WithoutCancel(ctx), lab.Faults{})

	const size, messages = 64 << 10, 600 // 9600 packets, of which 96 are lost
	fields := strings.Fields(fmt.Sprintf("perf write_bw -R -p 18620 -s %d -n %d", size, messages))
	// measure returns MB/s and the numbers of sent and lost packets.
	measure := func(device, faults string) (bandwidth, sent, dropped float64) {
		require.NoError(t, g.SetFaults(ctx, lab.Faults{FromGuest: faults}))
		var log bytes.Buffer
		server := exec.CommandContext(ctx, host, append(fields, "--addr", lab.HostIPv4.String())...)
		server.Stdout, server.Stderr = &log, &log
		stderr, err := os.CreateTemp(t.TempDir(), "")
		require.NoError(t, err)
		server.Stderr = stderr
		require.NoError(t, server.Start())
		for text := ""; !strings.Contains(text, "waiting for a client"); {
			b, err := os.ReadFile(stderr.Name())
			require.NoError(t, err)
			require.NoError(t, ctx.Err(), log.String())
			text = string(b)
		}
		// A packet of segmentation offload would be lost as a whole.
		command := []string{"env", "SOFTRNIC_LINK=nogso", path}
		command = append(append(append(command, fields...), strings.Fields(device)...), "--json", lab.HostIPv4.String())
		out, err := g.Output(ctx, command...)
		require.NoError(t, err, out)
		require.NoError(t, server.Wait(), log.String())
		m := regexp.MustCompile(`"BW_average": ([\d.]+)`).FindStringSubmatch(out)
		require.NotNil(t, m, out)
		bandwidth, err = strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		sent, dropped = sentFromGuest(ctx, t, g)
		return bandwidth, sent, dropped
	}
	devices := map[string]string{"softrnic": "--addr " + lab.GuestIPv4.String() + ":4792", "rxe": "--device uverbs:" + lab.Device}
	again := map[string]float64{} // packets sent again for each lost one, with 1 % loss
	losses := []float64{1}
	if isFull() {
		losses = []float64{0, 0.1, 1}
	}
	for name, device := range devices {
		for _, loss := range losses {
			bandwidth, sent, dropped := measure(device, fmt.Sprintf("loss %v%%", loss))
			// Without loss a message has a packet for each part of the path MTU.
			extra := sent - messages*size/4096
			t.Logf("%s, loss of %v %%: %.1f MB/s, %.0f packets sent, %.0f lost, %.0f more than without loss", name, loss, bandwidth, sent, dropped, extra)
			if loss == 1 {
				require.Positive(t, dropped)
				again[name] = extra / dropped
			}
		}
	}
	require.Less(t, again["softrnic"], again["rxe"], "packets sent again for each lost one")
}
