package experiments

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/cmd/bench/internal/acpbench"
	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

func TestMain(m *testing.M) {
	proc.ServeIfWorker()
	goleak.VerifyTestMain(m)
}

// smallRun is a small run of an experiment: its settings, and the expected rows by unit.
type smallRun struct {
	name  string
	long  bool // skipped with -short
	set   bench.Settings
	units map[string][]string // series
}

// Every experiment emits its documented rows.
func TestExperiments(t *testing.T) {
	for _, c := range []smallRun{
		// The adapter, and the verbs operations on which all layers are built.
		{
			name:  "beside-rxe", // rxe's series are in the guest: TestBenchBesideRxe in interop
			set:   bench.Settings{"latency": "8", "qps": "2", "iters": "20", "rounds": "1", "device": "none"},
			units: map[string][]string{measure.Microseconds: {"rc-write", "rc-send"}},
		},
		{
			name: "verbs-latency",
			set:  bench.Settings{"sizes": "8,5000", "iters": "50", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {
				"udp-spin", "udp-block", "udp-spin-round-trip", "udp-block-round-trip",
				"rc-write", "rc-send", "uc-write", "ud-send", "rc-read", "rc-atomic",
				"rc-write-event", "rc-send-event", "uc-write-event", "ud-send-event", "rc-read-event", "rc-atomic-event",
			}},
		},
		{
			name: "verbs-bandwidth",
			set:  bench.Settings{"sizes": "64KiB", "rounds": "2", "time": "5ms"},
			units: map[string][]string{measure.MegabytesPerSec: {
				"udp", "rc-write", "rc-send", "rc-read", "uc-write", "ud-send",
				"udp-mtu1024", "rc-write-mtu1024", "rc-send-mtu1024", "rc-read-mtu1024",
				"udp-default-buffer", "rc-write-default-buffer", "rc-send-default-buffer", "rc-read-default-buffer",
			}},
		},
		{
			name: "shared-memory",
			set:  bench.Settings{"latency": "8", "bandwidth": "64KiB", "beside": "nothing", "iters": "100", "rounds": "2", "time": "5ms"},
			units: map[string][]string{
				measure.Microseconds:      {"raw-ring", "flag", "rc-write", "rc-write-socket"},
				measure.MegabytesPerSec:   {"raw-ring", "rc-write", "rc-read", "rc-write-socket", "rc-read-socket"},
				measure.MessagesPerSecond: {"rc-write", "rc-read", "rc-write-socket", "rc-read-socket"},
			},
		},
		{
			name:  "verbs-rate",
			long:  true,
			set:   bench.Settings{"lists": "1,32", "rounds": "2", "time": "5ms"},
			units: map[string][]string{measure.MessagesPerSecond: {"udp", "udp-packet", "rc-write", "rc-send", "rc-read", "uc-write", "ud-send"}},
		},
		{
			name: "verbs-qps",
			long: true,
			set:  bench.Settings{"qps": "64,10000", "iters": "100", "rounds": "2"},
			units: map[string][]string{
				measure.Microseconds: {"udp-spin", "rc-write-alone", "rc-write", "rc-write-round-robin"},
				measure.Bytes:        {"memory-per-qp", "memory-per-qp-peer"},
			},
		},
		{
			name: "verbs-loss",
			long: true,
			set:  bench.Settings{"losses": "0.1,1", "rounds": "1", "time": "10ms", "size": "10000"},
			units: map[string][]string{
				measure.MegabytesPerSec: {"rc-write-lossless", "rc-write", "rc-write-lossless-delay-1ms", "rc-write-delay-1ms"},
				failedQPs:               {"rc-write", "rc-write-delay-1ms"},
			},
		},
		{
			name: "verbs-congestion",
			set:  bench.Settings{"flows": "2", "rounds": "1", "warmup": "20ms", "time": "50ms", "tcp": "nothing"},
			units: map[string][]string{
				jainUnit:                {"rc-write", "rc-write-off"},
				measure.MegabytesPerSec: {"rc-write", "rc-write-off"},
				measure.Microseconds:    {"rc-write", "rc-write-off"},
			},
		},
		{
			name: "ib-transports",
			long: true,
			set:  bench.Settings{"latency": "8,10000", "bandwidth": "4KiB,10000", "iters": "50", "rounds": "2", "time": "5ms", "beside": "nothing"},
			units: map[string][]string{
				measure.Microseconds:    {"udp-spin", "rc-send", "ud-send"},
				measure.MegabytesPerSec: {"udp", "rc-send", "ud-send"},
			},
		},
		{
			name:  "ib-qp-memory",
			set:   bench.Settings{"peers": "16,64"},
			units: map[string][]string{measure.Bytes: {"rc", "ud"}, eachUnit: {"rc-connection"}},
		},
		{
			name:  "ib-qp-latency",
			set:   bench.Settings{"qps": "2,40", "iters": "100", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {"udp-spin", "rc-write", "rc-write-icm"}},
		},
		{
			name:  "ib-concurrency",
			set:   bench.Settings{"senders": "2", "iters": "30", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {"udp-block", "copy", "zero-copy"}},
		},
		{
			name: "idle-cost",
			set:  bench.Settings{"connections": "20", "ranks": "3", "time": "50ms", "late": "50ms", "beside": "nothing"},
			units: map[string][]string{
				measure.PercentOfProcessor: {"udp", "device", "tcp", "rc", "sdp", "mpi-rdma", "mpi-shared"},
				measure.WakeupsPerSecond:   {"udp", "device", "tcp", "rc", "sdp", "mpi-rdma", "mpi-shared"},
			},
		},
		// SDP with all flow control modes, and TCP as the baseline.
		{
			name: "sdp-latency",
			set:  bench.Settings{"sizes": "1,64", "iters": "30", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {
				"tcp", "sdp-nic", "sdp-rdma", "sdp-credit", "sdp-nic-event", "sdp-rdma-event", "sdp-credit-event",
			}},
		},
		{
			name: "sdp-bandwidth",
			long: true,
			set:  bench.Settings{"sizes": "1KiB,64KiB", "rounds": "2", "time": "5ms", "reads": "any", "delay": "0,50us"},
			units: map[string][]string{
				measure.MegabytesPerSec: {
					"tcp", "tcp-bufio", "sdp-nic", "sdp-rdma", "sdp-credit", "sdp-nic-default", "sdp-rdma-default", "sdp-credit-default",
					"sdp-nic-delay-50us", "sdp-rdma-delay-50us", "sdp-credit-delay-50us",
				},
				modelUnit: {"sdp-nic-delay-50us", "sdp-rdma-delay-50us", "sdp-credit-delay-50us"},
			},
		},
		{
			name:  "sdp-progress",
			long:  true,
			set:   bench.Settings{"compute": "0,1200us", "iters": "3", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {"tcp", "sdp-nic", "sdp-rdma", "sdp-credit"}},
		},
		{
			name: "sdp-utilization",
			long: true,
			set:  bench.Settings{"sizes": "512,16KiB", "rounds": "3", "time": "20ms"},
			units: map[string][]string{
				"% of 64 KiB":  {"tcp", "sdp-nic", "sdp-rdma", "sdp-credit", "tcp-think-10us", "sdp-nic-think-10us"},
				"% of 256 KiB": {"tcp", "sdp-nic", "sdp-rdma", "sdp-credit", "sdp-credit-think-10us"},
			},
		},
		{
			name:  "sdp-http",
			long:  true,
			set:   bench.Settings{"connections": "4", "rounds": "2", "time": "10ms"},
			units: map[string][]string{requestsPerSecond: {"tcp", "sdp-nic", "sdp-rdma", "sdp-credit"}},
		},
		{
			name: "sdp-zerocopy",
			long: true,
			set:  bench.Settings{"sizes": "64KiB,1MiB", "rounds": "2", "time": "5ms"},
			units: map[string][]string{
				measure.MegabytesPerSec: {
					"tcp", "sdp-nic", "sdp-rdma", "sdp-credit", "sdp-nic-zero-copy", "sdp-rdma-zero-copy", "sdp-credit-zero-copy",
				},
				withoutCopy: {"sdp-nic-zero-copy", "sdp-rdma-zero-copy", "sdp-credit-zero-copy"},
			},
		},
		// MPI, with MPI over TCP as the baseline.
		{
			name:  "mpi-latency",
			set:   bench.Settings{"beside": "nothing", "sizes": "8,5000", "iters": "30", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {"mpi-tcp", "mpi-fast", "mpi-rdma", "rc-write", "tcp"}},
		},
		{
			name: "mpi-bandwidth",
			long: true,
			set:  bench.Settings{"beside": "nothing", "sizes": "8,64KiB", "windows": "2", "rounds": "2", "time": "5ms"},
			units: map[string][]string{
				measure.MegabytesPerSec:   {"mpi-tcp", "mpi-fast", "mpi-rdma", "rc-write", "tcp"},
				measure.MessagesPerSecond: {"mpi-tcp", "mpi-fast", "mpi-rdma", "rc-write", "tcp"},
			},
		},
		{
			name: "mpi-rails",
			long: true,
			set:  bench.Settings{"sizes": "256KiB", "rails": "1,2", "losses": "1", "windows": "1", "rounds": "2"},
			units: map[string][]string{
				measure.MegabytesPerSec: {"put-rails-1", "put-rails-2", "message-rails-1", "message-rails-2"},
			},
		},
		{
			name: "mpi-flow",
			long: true,
			set:  bench.Settings{"sizes": "256", "compute": "0,1200us", "windows": "2", "iters": "3", "rounds": "2", "ranks": "3"},
			units: map[string][]string{
				measure.MessagesPerSecond: {"flow-credit", "flow-rdma", "flow-nic", "flow-shared"},
				measure.Microseconds:      {"flow-credit", "flow-rdma", "flow-nic", "flow-shared"},
				peerMemory:                {"flow-credit", "flow-rdma", "flow-nic", "flow-shared"},
			},
		},
		{
			name: "ud-rdma-overlap",
			set:  bench.Settings{"size": "5000", "iters": "5", "rounds": "2", "time": "2ms"},
			units: map[string][]string{
				stolenIdle:              {"ud-read-event", "ud-read-poll", "ud-read-native"},
				stolenLoaded:            {"ud-read-event", "ud-read-poll", "ud-read-native"},
				measure.MegabytesPerSec: {"ud-read-event", "ud-read-poll", "ud-read-native"},
				overlapUnit:             {"ud-read-event", "ud-read-poll", "ud-read-native"},
				leftAfterCompute:        {"ud-read-event", "ud-read-poll", "ud-read-native"},
				transferCost:            {"ud-read-event", "ud-read-poll", "ud-read-native"},
			},
		},
		{
			name: "acp-progress",
			set:  bench.Settings{"size": "200000", "iters": "5", "rounds": "2", "time": "2ms"},
			units: map[string][]string{
				stolenIdle:       {"acp-calls", "acp-background"},
				overlapUnit:      {"acp-calls", "acp-background", "acp-copy"},
				leftAfterCompute: {"acp-calls", "acp-background", "acp-copy"},
				transferCost:     {"acp-calls", "acp-background", "acp-copy"},
			},
		},
		{
			name: "mpi-overlap",
			set:  bench.Settings{"size": "5000", "iters": "5", "rounds": "2", "time": "2ms"},
			units: map[string][]string{
				stolenIdle:       {"mpi-tcp", "mpi-rdma"},
				overlapUnit:      {"mpi-tcp-put", "mpi-tcp-isend", "mpi-rdma-put", "mpi-rdma-isend"},
				leftAfterCompute: {"mpi-tcp-put", "mpi-tcp-isend", "mpi-rdma-put", "mpi-rdma-isend"},
				transferCost:     {"mpi-tcp-put", "mpi-tcp-isend", "mpi-rdma-put", "mpi-rdma-isend"},
			},
		},
		{
			name: "mpi-channel",
			set:  bench.Settings{"sizes": "8,5000", "compute": "10us", "iters": "20", "rounds": "2", "ranks": "3"},
			units: map[string][]string{
				measure.Microseconds: {"halo-sendrecv", "halo-persistent", "halo-channel"},
				rankMemoryUnit:       {"halo-sendrecv", "halo-persistent", "halo-channel"},
				neighborMemoryUnit:   {"halo-persistent", "halo-channel"},
			},
		},
		{
			name: "mpi-put",
			long: true,
			set:  bench.Settings{"beside": "nothing", "latency": "8", "bandwidth": "1KiB,64KiB", "iters": "30", "windows": "1", "rounds": "2", "time": "5ms"},
			units: map[string][]string{
				measure.Microseconds:    {"mpi-tcp", "mpi-rdma", "mpi-fast-messages", "mpi-rdma-messages", "mpi-two-sided", "rc-write-round-trip"},
				measure.MegabytesPerSec: {"mpi-tcp", "mpi-rdma", "mpi-fast-messages", "mpi-rdma-messages", "mpi-two-sided", "rc-write"},
			},
		},
		{
			name: "mpi-get",
			long: true,
			set:  bench.Settings{"beside": "nothing", "latency": "5000", "bandwidth": "64KiB", "iters": "30", "windows": "1", "rounds": "2", "time": "5ms"},
			units: map[string][]string{
				measure.Microseconds:    {"mpi-tcp", "mpi-rdma", "mpi-fast-messages", "mpi-rdma-messages", "mpi-two-sided", "rc-read"},
				measure.MegabytesPerSec: {"mpi-tcp", "mpi-rdma", "mpi-fast-messages", "mpi-rdma-messages", "mpi-two-sided", "rc-read"},
			},
		},
		{
			name:  "imb-allreduce",
			long:  true,
			set:   bench.Settings{"beside": "nothing", "ranks": "4,2", "iters": "10", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {"mpi-tcp", "mpi-rdma", "mpi-shared"}},
		},
		{
			name: "imb-allgather",
			long: true,
			set:  bench.Settings{"beside": "nothing", "ranks": "3", "iters": "10", "rounds": "2", "sizes": "1000,4"},
			units: map[string][]string{
				measure.Microseconds: {"mpi-tcp", "mpi-rdma", "mpi-shared"},
				"us of 1000 B":       {"mpi-tcp", "mpi-rdma", "mpi-shared"},
			},
		},
		{
			name:  "imb-barrier",
			long:  true,
			set:   bench.Settings{"beside": "nothing", "ranks": "4", "iters": "10", "rounds": "2", "over": "rdma,fast"},
			units: map[string][]string{measure.Microseconds: {"mpi-tcp", "mpi-rdma", "mpi-fast"}},
		},
		{
			name: "nas-is",
			set:  bench.Settings{"beside": "nothing", "ranks": "2,4", "class": "S", "rounds": "2", "rc-limit": "2,64"},
			units: map[string][]string{
				operations: {"mpi-tcp", "mpi-fast", "mpi-rdma", "mpi-ud"}, onRanks(operations, 4): {"mpi-hybrid"},
				measure.Bytes: {"mpi-tcp", "mpi-fast", "mpi-rdma", "mpi-ud"}, onRanks(measure.Bytes, 4): {"mpi-hybrid"},
			},
		},
		{
			name:  "nas-cg",
			long:  true,
			set:   bench.Settings{"beside": "nothing", "ranks": "2", "class": "S", "rounds": "2", "over": "rdma,ud"},
			units: map[string][]string{operations: {"mpi-tcp", "mpi-rdma", "mpi-ud"}},
		},
		{
			name:  "nas-ep",
			long:  true,
			set:   bench.Settings{"ranks": "2", "class": "S", "rounds": "1"},
			units: map[string][]string{operations: {"mpi-tcp", "mpi-rdma"}},
		},
		{
			name: "a2a-rdma",
			long: true,
			set:  bench.Settings{"beside": "nothing", "ranks": "2,3", "sizes": "100", "iters": "3", "rounds": "2", "icm": "off,2:1us"},
			units: map[string][]string{
				"us on 2 ranks": {"direct-srq", "rdma", "rtsrtr", "direct-srq-icm-2:1us", "rdma-icm-2:1us"},
				"us on 3 ranks": {"direct-srq", "rdma", "rtsrtr", "direct-srq-icm-2:1us", "rdma-icm-2:1us"},
			},
		},
		{
			name: "a2a-ud",
			long: true,
			set:  bench.Settings{"beside": "nothing", "ranks": "3", "sizes": "64", "iters": "3", "rounds": "2", "icm": "2:50%,off"},
			units: map[string][]string{
				"us on 3 ranks": {"direct-srq", "direct-ud", "bruck", "table", "shared", "direct-srq-icm-2:50%", "direct-ud-icm-2:50%", "bruck-icm-2:50%"},
				"us a miss":     {"penalty-icm-2:50%"},
			},
		},
		{
			name: "a2a-hybrid",
			long: true,
			set:  bench.Settings{"ranks": "3", "limits": "1,2,3", "size": "100", "memory": "2,3", "iters": "3", "rounds": "2"},
			units: map[string][]string{
				measure.Microseconds: {"hybrid", "hybrid-icm-4:50%"},
				measure.Bytes: {"memory-per-rank", "memory-per-rank-ud-idle", "memory-per-rank-rc-idle", "memory-per-rank-ud-byte",
					"memory-per-rank-rc-byte", "memory-per-rank-ud-flood", "memory-per-rank-rc-flood"},
			},
		},
		// ACP, and the verbs operations on which channels are built.
		{
			name: "acp-gma",
			long: true,
			set:  bench.Settings{"sizes": "8,5000", "ranks": "2,3", "iters": "20", "rounds": "2"},
			units: map[string][]string{
				"us on 2 ranks": {"rc-read", "remote-to-local", "local-to-remote"},
				"us on 3 ranks": {"rc-read", "remote-to-local", "local-to-remote", "remote-to-remote"},
			},
		},
		{
			name: "acp-memory",
			set:  bench.Settings{"ranks": "1000,100000", "processes": "2,6", "slot-sizes": "4KiB", "slots": "2"},
			units: map[string][]string{
				measure.Bytes: {"basic-layer", "rank-idle", "rank-connected", "receiver-2-slots", "sender-2-slots-first", "sender-2-slots-account"},
				eachRankUnit:  {"basic-layer-each-rank", "rank-connected-each-rank"},
				overFormula:   {"receiver-2-slots", "sender-2-slots-first", "sender-2-slots-account"},
			},
		},
		{
			name:  "acp-pingpong",
			set:   bench.Settings{"sizes": "8", "slot-sizes": "4KiB", "iters": "30", "rounds": "2"},
			units: map[string][]string{measure.Microseconds: {"rc-send", "acp-imm-4KiB", "acp-mirrored-4KiB"}},
		},
		{
			name: "acp-bandwidth",
			long: true,
			set:  bench.Settings{"sizes": "100000", "slot-sizes": "64KiB", "copies": "no,yes", "megabytes": "1", "rounds": "2", "time": "5ms"},
			units: map[string][]string{measure.MegabytesPerSec: {
				"rc-write-64KiB", "acp-imm-64KiB", "acp-mirrored-64KiB", "acp-imm-copy-64KiB", "acp-mirrored-copy-64KiB", "acp-imm-64KiB-stream",
			}},
		},
		{
			name: "acp-slots",
			long: true,
			set:  bench.Settings{"slots": "2,4", "sizes": "8,200000", "iters": "20", "rounds": "2"},
			units: map[string][]string{
				"us of 8B":      {"send-slots", "receive-slots", "send-slots-imm", "receive-slots-imm"},
				"us of 200000B": {"send-slots", "receive-slots", "send-slots-imm", "receive-slots-imm"},
			},
		},
		{
			name: "acp-connect",
			long: true,
			set:  bench.Settings{"slot-sizes": "4KiB,64KiB", "slots": "2", "count": "3"},
			units: map[string][]string{measure.Microseconds: {
				"connect-sender", "connect-receiver", "free-sender", "free-receiver", "connect-sender-imm", "free-sender-imm", "free-receiver-imm",
			}},
		},
		// Every layer beside UDP, TCP and, if it is installed, Open MPI.
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
		// The applications with all flow control modes, and TCP as the baseline.
		{
			name: "dc-microscope",
			long: true,
			set:  bench.Settings{"sizes": "100000,256KiB", "rounds": "2", "paper-sizes": "100000", "paper-processes": "3"},
			units: map[string][]string{
				measure.Milliseconds:                 {"tcp", "tcp-bufio", "sdp-nic", "sdp-rdma", "sdp-credit"},
				unitsPerMessage:                      {"sdp-nic", "sdp-rdma", "sdp-credit"},
				inProcesses(measure.Milliseconds, 3): {"tcp", "tcp-bufio", "sdp-nic", "sdp-rdma", "sdp-credit"},
				inProcesses(unitsPerMessage, 3):      {"sdp-nic", "sdp-rdma", "sdp-credit"},
			},
		},
		{
			name: "dc-isosurface",
			long: true,
			set:  bench.Settings{"sizes": "100000", "rounds": "2", "paper-sizes": "100000"},
			units: map[string][]string{
				measure.Milliseconds:                  {"tcp", "tcp-bufio", "sdp-nic", "sdp-rdma", "sdp-credit"},
				unitsPerMessage:                       {"sdp-nic", "sdp-rdma", "sdp-credit"},
				inProcesses(measure.Milliseconds, 12): {"tcp", "tcp-bufio", "sdp-nic", "sdp-rdma", "sdp-credit"},
				inProcesses(unitsPerMessage, 12):      {"sdp-nic", "sdp-rdma", "sdp-credit"},
			},
		},
	} {
		t.Run(c.name, c.check)
	}
}

// mayBeZero reports whether a figure of a short run may be 0.
func mayBeZero(r bench.Row) bool {
	return strings.HasPrefix(r.Series, "tcp") && r.YUnit[0] == '%' || // the reader of TCP may keep its buffers empty
		slices.Contains([]string{failedQPs, overFormula, stolenIdle, stolenLoaded, overlapUnit, leftAfterCompute, transferCost}, r.YUnit)
}

// check runs the experiment. It requires the expected rows, with their baselines, and a
// verdict. Whether the verdict holds depends on the load of the machine.
func (c smallRun) check(t *testing.T) {
	if c.long && testing.Short() {
		t.Skip("takes some seconds")
	}
	found, err := bench.Default.Find(c.name)
	require.NoError(t, err)
	res, err := bench.Execute(t.Context(), found[0], bench.Options{Quick: true, Set: c.set})
	require.NoError(t, err)
	require.Len(t, res.Outcomes, len(found[0].Claims))

	type place struct {
		series string
		x      float64
		unit   string
	}
	rows := map[place]bool{}
	for _, r := range res.Rows {
		if r.Absent != "" {
			continue
		}
		at := place{r.Series, r.X, r.YUnit}
		require.False(t, rows[at], "%+v comes twice", at)
		rows[at] = true
		if !mayBeZero(r) {
			require.Positive(t, r.Y, "%+v", at)
		}
	}
	for _, r := range res.Rows {
		if r.Against != nil {
			require.True(t, rows[place{r.Baseline, r.X, r.YUnit}], "baseline %s of %s at %v", r.Baseline, r.Series, r.X)
			if !mayBeZero(r) {
				require.Positive(t, r.Ratio)
			}
		}
	}
	for unit, series := range c.units {
		for _, s := range series {
			require.Condition(t, func() bool {
				for at := range rows {
					if at.series == s && at.unit == unit {
						return true
					}
				}
				return false
			}, "no row of %s in %s", s, unit)
		}
	}
}

func TestImpairSpec(t *testing.T) {
	require.Equal(t, "", impairSpec("", "0"))
	require.Equal(t, "loss 0.1% seed 7", impairSpec("0.1", "0"))
	require.Equal(t, "delay 1ms limit 1000000 loss 5% seed 7", impairSpec("5", "1ms"))
	require.Equal(t, "delay 1ms limit 1000000", impairSpec("", "1ms"))
}

func TestChannelSeries(t *testing.T) {
	require.Equal(t, "acp-imm-copy-64KiB", channelSeries(acpbench.Channel{SlotSize: 64 << 10, Imm: true, Copy: true}))
	require.Equal(t, "acp-mirrored-2MiB", channelSeries(acpbench.Channel{SlotSize: 2 << 20}))
	require.Equal(t, "acp-mirrored-100B", channelSeries(acpbench.Channel{SlotSize: 100}))
}

func TestWindowsFor(t *testing.T) {
	require.Equal(t, 781, windowsFor(64, 50*time.Millisecond))
	require.Equal(t, 23, windowsFor(64<<10, 50*time.Millisecond))
	require.Equal(t, 1, windowsFor(4<<20, time.Millisecond))
}

// TestICMWords: the parameter icm refuses words that are no model, with the range.
func TestICMWords(t *testing.T) {
	found, err := bench.Default.Find("a2a-ud")
	require.NoError(t, err)
	for word, want := range map[string]string{
		"on":        `"on" is not off or 1 to 4096 entries and a penalty, such as 16:500ns or 16:50%`,
		"5000:1us":  `"5000:1us" is not off or 1 to 4096 entries and a penalty`,
		"16:0s":     `"16:0s": penalty "0s" out of range (0, 1s]`,
		"16":        `"16": penalty "" out of range (0, 1s]`,
		"16:1001%":  `"16:1001%": penalty "1001%" out of range (0%, 1000%]`,
		"off,16:x%": `penalty "x%" out of range`,
	} {
		require.ErrorContains(t, bench.CheckSettings(found, bench.Settings{"icm": word}), want)
	}
	require.NoError(t, bench.CheckSettings(found, bench.Settings{"icm": "off,16:500ns,4:20%,8:5us"}))
}
