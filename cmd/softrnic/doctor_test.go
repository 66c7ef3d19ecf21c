package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/wire"
)

// healthy is a machine without a problem.
func healthy() machineFacts {
	return machineFacts{
		goos: "linux", goarch: "amd64", goVersion: "go1.26", cpus: 8, maxProcs: 8,
		probe: link.ProbeResult{GSO: true, GRO: true, MMsg: true, Name: "udp-linux",
			RecvBuffer: 8 << 20, SendBuffer: 4 << 20, RecvBufferMax: 8 << 20, SendBufferMax: 4 << 20},
		addresses: []interfaceAddr{
			{netip.MustParseAddr("127.0.0.1"), "lo", 65536},
			{netip.MustParseAddr("fe80::1%eth0"), "eth0", 9000},
			{netip.MustParseAddr("192.0.2.1"), "eth0", 9000},
		},
		test: selfTestResult{from: netip.MustParseAddrPort("127.0.0.1:4791"), to: netip.MustParseAddrPort("127.0.0.2:4791"),
			bytes: 1 << 20, took: 1500 * time.Microsecond, packets: 520, retransmitted: 1},
	}
}

// doctor runs the command on a machine.
func doctor(t *testing.T, s machineFacts, line string) (status int, stdout, stderr string) {
	t.Helper()
	a := newApp(nil, nil)
	a.inspectMachine = func(context.Context, rnic.Options) machineFacts { return s }
	return run(t, a, line)
}

func TestDoctorHealthy(t *testing.T) {
	quiet(t)
	status, stdout, stderr := doctor(t, healthy(), "doctor")
	require.Zero(t, status, stderr)
	golden(t, "doctor.golden", stdout)
	require.NotContains(t, stdout, "WARN")
}

func TestDoctorFindings(t *testing.T) {
	quiet(t)
	busy := errors.New("link: bind 127.0.0.1:4791: port 4791 is in use")
	for name, c := range map[string]struct {
		change func(*machineFacts)
		level  level
		want   []string
	}{
		"small receive buffer": {func(s *machineFacts) { s.probe.RecvBuffer, s.probe.RecvBufferMax = 212992, 212992 }, levelWarn,
			[]string{"208 KiB instead of 8 MiB (net.core.rmem_max is 212992)", "sudo sysctl -w net.core.rmem_max=8388608", "/etc/sysctl.d/90-softrnic.conf"}},
		"small send buffer": {func(s *machineFacts) { s.probe.SendBuffer = 212992 }, levelWarn,
			[]string{"208 KiB instead of 4 MiB", "sudo sysctl -w net.core.wmem_max=4194304"}},
		"small buffer on macOS": {func(s *machineFacts) { s.goos, s.probe.RecvBuffer = "darwin", 4<<20 }, levelWarn,
			[]string{"4 MiB instead of 8 MiB", "kern.ipc.maxsockbuf=16777216"}},
		"unknown buffer": {func(s *machineFacts) { s.probe.RecvBuffer = 0 }, levelOK, []string{"does not report its size"}},
		"no GSO":         {func(s *machineFacts) { s.probe.GSO = false }, levelWarn, []string{"UDP_SEGMENT is not available", "use Linux 4.18"}},
		"no GRO":         {func(s *machineFacts) { s.probe.GRO = false }, levelWarn, []string{"UDP_GRO is not available", "use Linux 5.0"}},
		"no mmsg":        {func(s *machineFacts) { s.probe.MMsg = false }, levelWarn, []string{"sendmmsg is not available"}},
		"Windows": {func(s *machineFacts) {
			s.goos, s.probe.GSO, s.probe.GRO, s.probe.MMsg, s.probe.Name = "windows", false, false, false, "udp-portable"
		}, levelOK, []string{"UDP_SEGMENT exists on Linux only; not needed on windows", "link udp-portable"}},
		"accelerations off": {func(s *machineFacts) { s.linkEnv = "nogso" }, levelWarn, []string{"SOFTRNIC_LINK=nogso", "unset SOFTRNIC_LINK"}},
		"no sockets":        {func(s *machineFacts) { s.probe = link.ProbeResult{Err: errors.New("no UDP here")} }, levelFail, []string{"no UDP here"}},
		"kernel rxe": {func(s *machineFacts) {
			s.probe.RoCEPort, s.rdmaDevices, s.rxeLoaded = busy, []string{"mlx5_0", "rxe0"}, true
		}, levelWarn,
			[]string{"in use by the kernel's rdma_rxe (rxe0)", "--addr 127.0.0.1:4792", "sudo rdma link delete rxe0"}},
		"rxe without a device": {func(s *machineFacts) { s.probe.RoCEPort, s.rxeLoaded = busy, true }, levelWarn,
			[]string{"possibly by the kernel's rdma_rxe", "sudo modprobe -r rdma_rxe"}},
		"port taken":       {func(s *machineFacts) { s.probe.RoCEPort = busy }, levelWarn, []string{"port 4791 is in use", "ss -ulpn sport = :4791"}},
		"RDMA hardware":    {func(s *machineFacts) { s.rdmaDevices = []string{"mlx5_0"} }, levelOK, []string{"free; the kernel has RDMA devices of its own: mlx5_0"}},
		"Ethernet":         {func(s *machineFacts) { s.addresses[2].mtu = 1500 }, levelOK, []string{"interface MTU 1500, RoCE MTU 1024", "ip link set dev eth0 mtu 4180"}},
		"busy machine":     {func(s *machineFacts) { s.test.retransmitted = 9 }, levelWarn, []string{"9 of them retransmitted: slow, or retransmissions without a network", "check the load of the machine"}},
		"tiny MTU":         {func(s *machineFacts) { s.addresses[2].mtu = 300 }, levelWarn, []string{"interface MTU 300 is too small for any RoCE packet"}},
		"loopback only":    {func(s *machineFacts) { s.addresses = s.addresses[:1] }, levelWarn, []string{"peers on this machine only"}},
		"no address":       {func(s *machineFacts) { s.addresses = nil }, levelFail, []string{"no interface that is up has an address"}},
		"one processor":    {func(s *machineFacts) { s.cpus, s.maxProcs = 1, 1 }, levelWarn, []string{"1, GOMAXPROCS 1"}},
		"GOMAXPROCS=1":     {func(s *machineFacts) { s.maxProcs = 1 }, levelWarn, []string{"8, GOMAXPROCS 1", "unset GOMAXPROCS"}},
		"GOMAXPROCS=16":    {func(s *machineFacts) { s.maxProcs = 16 }, levelWarn, []string{"8, GOMAXPROCS 16", "unset GOMAXPROCS"}},
		"no endpoint":      {func(s *machineFacts) { s.endpoint = errors.New("no directory for sockets") }, levelWarn, []string{"no directory for sockets"}},
		"self test failed": {func(s *machineFacts) { s.test.err = errors.New("nothing arrived") }, levelFail, []string{"nothing arrived"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy()
			c.change(&s)
			status, stdout, stderr := doctor(t, s, "doctor")
			worst := levelOK
			for _, f := range evaluate(s) {
				if f.Level == levelFail || worst == levelOK {
					worst = f.Level
				}
			}
			require.Equal(t, c.level, worst, stdout)
			for _, want := range c.want {
				require.Contains(t, stdout, want)
			}
			require.Equal(t, c.level == levelFail, status == 1, "only a FAIL is a failure")
			require.Equal(t, c.level == levelFail, strings.Contains(stderr, "checks failed"))
		})
	}
}

func TestDoctorJSON(t *testing.T) {
	quiet(t)
	s := healthy()
	s.test.err = errors.New("nothing arrived")
	status, stdout, _ := doctor(t, s, "doctor --json")
	require.Equal(t, 1, status)
	var d struct {
		OK        bool          `json:"ok"`
		Checks    []checkResult `json:"checks"`
		NotTested string        `json:"not_tested"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &d))
	require.False(t, d.OK)
	require.Equal(t, evaluate(s), d.Checks)
	require.NotEmpty(t, d.NotTested)
}

// TestDoctorOnThisMachine examines the machine on which the tests run: whatever else it finds, the self test
// must succeed.
func TestDoctorOnThisMachine(t *testing.T) {
	quiet(t)
	s := inspectMachine(t.Context(), rnic.Options{})
	require.NoError(t, s.test.err)
	require.NoError(t, s.endpoint)
	require.NoError(t, s.probe.Err)
	require.Positive(t, s.test.packets)
	require.NotEmpty(t, s.addresses)
	require.Positive(t, s.cpus)
}

// TestSelfTestFailsOnBrokenLink checks that the self test fails on a broken link.
func TestSelfTestFailsOnBrokenLink(t *testing.T) {
	quiet(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r, _ := selfTest(ctx, rnic.Options{Impair: "loss 100%"})
	require.ErrorContains(t, r.err, "waiting for a completion")
	r, _ = selfTest(t.Context(), rnic.Options{Addrs: "127.0.0.1"})
	require.NoError(t, r.err, "both devices at the address of a list")
	r, _ = selfTest(t.Context(), rnic.Options{Addr: netip.MustParseAddrPort("203.0.113.1:1")})
	require.ErrorContains(t, r.err, "203.0.113.1")
}

func TestModuleLoaded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "modules")
	require.NoError(t, os.WriteFile(file, []byte("ib_core 40 3 rdma_rxe,ib_uverbs, Live 0x0\nrdma_rxe 163840 0 - Live 0x0\n"), 0o600))
	require.True(t, moduleLoaded(file, "rdma_rxe"))
	require.False(t, moduleLoaded(file, "ib_uverbs"))
	require.False(t, moduleLoaded(file+"x", "rdma_rxe"))
	require.Equal(t, []string{"modules"}, listDir(filepath.Dir(file)))
	require.Empty(t, listDir(file+"x"))
}

func TestFullMTU(t *testing.T) {
	full := fullMTU()
	require.Equal(t, wire.MaxMTU, wire.PathMTU(full, false))
	require.Equal(t, wire.MaxMTU, wire.PathMTU(full, true))
	require.Less(t, wire.PathMTU(full-1, true), wire.MaxMTU)
}
