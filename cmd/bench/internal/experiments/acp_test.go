package experiments

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
)

// The ACP experiments include the verbs operations on which channels are built.
func TestACPExperiments(t *testing.T) {
	for _, c := range []smallRun{
		{
			name:  "acp-gma",
			set:   bench.Settings{"sizes": "8,5000", "ranks": "3", "iters": "20", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {"rc-read", "remote-to-local", "local-to-remote", "remote-to-remote"}},
		},
		{
			name:  "acp-memory",
			set:   bench.Settings{"ranks": "1000,100000", "slot-sizes": "4KiB", "slots": "2"},
			units: map[string][]string{measure.Bytes: {"basic-layer", "receiver-2-slots", "sender-2-slots", "receiver-2-slots-heap", "sender-2-slots-heap"}},
		},
		{
			name:  "acp-pingpong",
			set:   bench.Settings{"sizes": "8", "slot-sizes": "4KiB", "iters": "30", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {"rc-send", "acp-imm-4KiB", "acp-mirrored-4KiB"}},
		},
		{
			name:  "acp-bandwidth",
			set:   bench.Settings{"sizes": "100000", "slot-sizes": "64KiB", "copies": "no,yes", "megabytes": "1", "rounds": "2", "time": "5ms"},
			units: map[string][]string{measure.MegabytesPerSec: {"rc-write-64KiB", "acp-imm-64KiB", "acp-mirrored-64KiB", "acp-imm-copy-64KiB", "acp-mirrored-copy-64KiB"}},
		},
		{
			name:  "acp-slots",
			set:   bench.Settings{"slots": "2,4", "iters": "20", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {"send-slots", "receive-slots", "send-slots-imm", "receive-slots-imm"}},
		},
		{
			name:  "acp-connect",
			set:   bench.Settings{"slot-sizes": "4KiB,64KiB", "slots": "2", "count": "3"},
			units: map[string][]string{measure.Microseconds: {"connect-sender", "free-receiver", "connect-sender-imm", "free-receiver-imm"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.long = c.name != "acp-pingpong" && c.name != "acp-memory"
			c.check(t)
		})
	}
}

func TestChannelSeries(t *testing.T) {
	require.Equal(t, "acp-imm-copy-64KiB", channelSeries(acpbench.Channel{SlotSize: 64 << 10, Imm: true, Copy: true}))
	require.Equal(t, "acp-mirrored-2MiB", channelSeries(acpbench.Channel{SlotSize: 2 << 20}))
	require.Equal(t, "acp-mirrored-100B", channelSeries(acpbench.Channel{SlotSize: 100}))
}
