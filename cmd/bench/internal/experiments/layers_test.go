package experiments

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// Every layer is measured beside UDP, TCP and, if it is installed, Open MPI.
func TestLayersExperiments(t *testing.T) {
	for _, c := range []smallRun{
		{
			name: "layers-latency",
			set:  bench.Settings{"beside": "nothing", "sizes": "8,1KiB", "iters": "30", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {
				"udp-spin", "udp-netpoll", "tcp", "rc-write", "rc-send", "rdm-send", "sdp-nic", "mpi-shared", "acp-imm-64KiB",
			}},
		},
		{
			name: "layers-stream",
			long: true,
			set:  bench.Settings{"beside": "nothing", "sizes": "64,64KiB,1MiB", "rounds": "2", "time": "5ms"},
			units: map[string][]string{
				measure.MessagesPerSecond: {"udp", "udp-packet", "tcp", "rc-write", "rc-send", "rdm-send", "sdp-nic", "mpi-shared", "acp-imm-64KiB"},
				measure.MegabytesPerSec:   {"udp", "udp-packet", "tcp", "rc-write", "rc-send", "rdm-send", "sdp-nic", "mpi-shared", "acp-imm-64KiB"},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

func TestWindowsFor(t *testing.T) {
	require.Equal(t, 781, windowsFor(64, 50*time.Millisecond))
	require.Equal(t, 23, windowsFor(64<<10, 50*time.Millisecond))
	require.Equal(t, 1, windowsFor(4<<20, time.Millisecond))
}
