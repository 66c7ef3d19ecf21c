package dropin_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/dropin/internal/programtest"
)

// TestRDMACMCalls runs the cases of testdata/rdmacm.c: errno, states, events and descriptors.
func TestRDMACMCalls(t *testing.T) {
	program := buildProgram(t, "rdmacm.c", "-lrdmacm")
	for _, name := range []string{"states", "connect", "external", "datagrams", "channel", "close", "fork", "reuse", "early"} {
		t.Run(name, func(t *testing.T) {
			end := command{args: []string{program, name}, environ: []string{"SOFTRNIC_ADDR=127.0.114.1"}}.runProgram(t)
			require.Zero(t, end.code, end)
			require.Empty(t, end.stdout, end)
		})
	}
}

// A pair is a program with its arguments as server and as client. In those of the client, HOST is the
// address of the server.
type pair struct {
	server, client string
	persistent     bool   // the server does not end by itself
	ownAddrs       bool   // each process selects its address
	hangup         bool   // the client may fail with POLLHUP when the server has sent its last bytes and ended
	environ        string // in addition
	wants          string // in the client's output
}

// serverAddr and clientAddr are the addresses of the two processes.
var serverAddr, clientAddr = netip.MustParseAddr("127.0.114.2"), netip.MustParseAddr("127.0.114.3")

// run runs both programs until they end well. A client that comes before its server listens is
// rejected, and starts again.
func (p pair) run(t *testing.T) {
	t.Helper()
	words := func(text string) []string {
		return strings.Fields(strings.ReplaceAll(text, "HOST", serverAddr.String()))
	}
	programtest.NeedPrograms(t, words(p.server)[0], words(p.client)[0])
	side := func(args string, addr netip.Addr) command {
		environ := []string{"SOFTRNIC_ADDR=" + addr.String()}
		if p.ownAddrs {
			environ = nil
		}
		return command{args: words(args), environ: append(environ, strings.Fields(p.environ)...)}
	}
	server, serverEnd := side(p.server, serverAddr).start(t)
	var client result
	for range 20 {
		client = side(p.client, clientAddr).runProgram(t)
		if p.hangup && client.code == pollHangup { // the server's status tells
			client.code = 0
		}
		if client.endedWell() {
			break
		}
	}
	if p.persistent || !client.endedWell() {
		require.NoError(t, server.Process.Kill())
	}
	end := serverEnd()
	require.True(t, client.endedWell(), "client %s\nserver %s", client, end)
	require.Contains(t, client.stdout, p.wants, client)
	if !p.persistent {
		require.True(t, end.endedWell(), end)
	}
}

// pollHangup is the exit status of rstream if it polls late: it takes POLLHUP (poll(2)) for an error although there are
// data to read as well.
const pollHangup = 16

// endedWell reports whether a program ended with status 0, or as rping does at times after all is done:
// its main thread closes the event channel, and its other thread, if it begins to read then, exits.
func (r result) endedWell() bool {
	return r.code == 0 || r.code == 255 && strings.HasSuffix(strings.TrimSpace(r.stderr), "rdma_get_cm_event: Bad file descriptor")
}

// TestRDMACMPrograms runs the programs of rdma-core, perftest, libfabric and qperf that connect by
// librdmacm, unmodified, between two processes.
func TestRDMACMPrograms(t *testing.T) {
	pairs := []pair{
		{server: "rping -s -C 100", client: "rping -c -a HOST -C 100 -V"},
		{server: "rping -s -P", client: "rping -c -a HOST -C 5 -V", persistent: true},
		{server: "ucmatose", client: "ucmatose -s HOST", wants: "return status 0"},
		{server: "ucmatose -C 10 -c 10 -S 1000", client: "ucmatose -s HOST -C 10 -c 10 -S 1000", wants: "return status 0"},
		{server: "ucmatose -m", client: "ucmatose -s HOST -m", wants: "migrating to new event channel"},
		{server: "udaddy -c 5", client: "udaddy -s HOST -c 5", wants: "return status 0"},
		{server: "rdma_server", client: "rdma_client -s HOST", wants: "rdma_client: end 0"},
		{server: "cmtime -b HOST", client: "cmtime -s HOST -c 20", persistent: true, wants: "disconnect"},
		{server: "rstream -b HOST -S 4000 -I 100 -C 100", client: "rstream -s HOST -S 4000 -I 100 -C 100"},
		{server: "rstream -b HOST -S 4000 -I 100 -C 100 -T a", client: "rstream -s HOST -S 4000 -I 100 -C 100 -T a", hangup: true},
		{server: "riostream -b HOST -S 64 -C 1 -I 100 -T v", client: "riostream -s HOST -S 64 -C 1 -I 100 -T v"},
		{server: "ib_write_bw -R -q 4 -n 200", client: "ib_write_bw -R -q 4 -n 200 HOST"},
		{server: "ib_send_bw -R -e --use-srq -r 64 -n 200", client: "ib_send_bw -R -e --use-srq -r 64 -n 200 HOST"},
		{server: "fi_pingpong -p verbs -e msg", client: "fi_pingpong -p verbs -e msg HOST", wants: "64k"},
		{server: "qperf", client: "qperf HOST -cm1 -t 1 rc_lat", persistent: true, wants: "latency"},
	}
	if runAll {
		for _, test := range []string{"ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat", "ib_send_bw", "ib_read_bw", "ib_atomic_bw"} {
			pairs = append(pairs, pair{server: test + " -R -n 200", client: test + " -R -n 200 HOST"})
		}
		pairs = append(pairs, pair{server: "fi_pingpong -p verbs;ofi_rxm -e rdm", client: "fi_pingpong -p verbs;ofi_rxm -e rdm HOST", wants: "64k"})
	}
	for _, p := range pairs {
		t.Run(strings.ReplaceAll(p.server, " ", ""), p.run)
	}
}

// TestRsocketCopy copies a file with rcopy.
func TestRsocketCopy(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	require.NoError(t, os.WriteFile(from, data, 0o600))
	pair{server: "rcopy", client: fmt.Sprintf("rcopy %s HOST:%s", from, to), persistent: true}.run(t)
	got, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, data, got)
}

// TestPreloadedSockets runs a program of TCP sockets over RDMA, with rdma-core's librspreload before
// and after the preloaded library.
func TestPreloadedSockets(t *testing.T) {
	const spreload = "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"
	if err := requireFiles(spreload); err != nil {
		t.Skip(err)
	}
	program := buildProgram(t, "tcp.c")
	ours := filepath.Join(programtest.LibraryDir(t), "libsoftrnic-preload.so")
	for _, order := range []string{ours + ":" + spreload, spreload + ":" + ours} {
		p := pair{server: program + " server HOST 7777", client: program + " client HOST 7777", environ: "LD_PRELOAD=" + order}
		p.wants = "peer " + serverAddr.String()
		p.run(t)
	}
}

// TestManyConnections connects hundreds of queue pairs at once.
func TestManyConnections(t *testing.T) {
	pair{server: "ucmatose -c 200 -C 1", client: "ucmatose -s HOST -c 200 -C 1", wants: "return status 0"}.run(t)
}

// TestHostAddresses connects to addresses of the host: without an address given, each process has
// one of its own that the user does not know, and the client finds the process by its port.
func TestHostAddresses(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		port := programtest.FreePort(t)
		p := pair{server: "rping -s -C 5 -p " + port, client: "rping -c -C 5 -V -p " + port + " -a " + host, ownAddrs: true}
		p.run(t)
	}
	port := programtest.FreePort(t)
	pair{server: "udpong -b HOST -p " + port, client: "udpong -s HOST -C 50 -p " + port, persistent: true, wants: "usec/xfer"}.run(t)
	for _, own := range []bool{false, true} { // without -b the server binds ::1
		port := programtest.FreePort(t)
		pair{server: "udpong -p " + port, client: "udpong -s ::1 -C 50 -p " + port, persistent: true, ownAddrs: own, wants: "usec/xfer"}.run(t)
	}
}

// TestSharedAddressRDMACM connects two processes at one address.
func TestSharedAddressRDMACM(t *testing.T) {
	port := programtest.FreePort(t)
	pair{server: "rping -s -C 5 -p " + port, client: "rping -c -C 5 -V -a 127.0.114.4 -p " + port, environ: "SOFTRNIC_ADDR=127.0.114.4"}.run(t)
}
