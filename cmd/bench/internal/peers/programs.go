package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Perftest is one of the programs of perftest (Debian: perftest).
type Perftest string

// The programs that are compared with our own.
const (
	IBWriteLat Perftest = "ib_write_lat"
	IBSendLat  Perftest = "ib_send_lat"
	IBWriteBW  Perftest = "ib_write_bw"
	IBSendBW   Perftest = "ib_send_bw"
)

// RDMADevice returns the kernel's first RDMA device, rxe or a hardware adapter. It returns
// false if there is none or perftest is not installed.
func RDMADevice() (name string, ok bool) {
	if _, err := exec.LookPath(string(IBWriteBW)); err != nil {
		return "", false
	}
	entries, err := os.ReadDir("/sys/class/infiniband")
	if err != nil || len(entries) == 0 {
		return "", false
	}
	return entries[0].Name(), true
}

// Run runs the program as server and client on one kernel device and returns its figure: the
// bandwidth in MB/s, or the typical latency in microseconds, which is half a round trip and for
// reads a whole one.
func (p Perftest) Run(ctx context.Context, device string, size, iters int) (float64, error) {
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	common := []string{string(p), "-d", device, "-F", "-s", strconv.Itoa(size), "-n", strconv.Itoa(iters), "-p", port}
	if gid, err := ipv4GID(device); err == nil {
		common = append(common, "-x", strconv.Itoa(gid))
	}
	out, err := runPair(ctx, common, append(common[:len(common):len(common)], "127.0.0.1"))
	if err != nil {
		return 0, err
	}
	return p.parseTable(out)
}

// ipv4GID returns the index of the first RoCE v2 GID of the device with an IPv4-mapped address.
// Older versions of perftest select another GID by default.
func ipv4GID(device string) (int, error) {
	port := filepath.Join("/sys/class/infiniband", device, "ports/1")
	for i := range 256 {
		gid, err := os.ReadFile(filepath.Join(port, "gids", strconv.Itoa(i)))
		if err != nil {
			return 0, err
		}
		typ, err := os.ReadFile(filepath.Join(port, "gid_attrs/types", strconv.Itoa(i)))
		if err == nil && strings.HasPrefix(string(gid), "0000:0000:0000:0000:0000:ffff:") && strings.HasPrefix(string(typ), "RoCE v2") {
			return i, nil
		}
	}
	return 0, errors.New("peers: no RoCE v2 GID with an IPv4 address")
}

// parseTable parses the table by its column names. Units are in brackets,
// and bandwidth is in MiB/s:
//
//	#bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
//	65536      1000             1234.56            1230.11            0.019682
//
//	#bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec] ...
//	8       1000          2.51           13.32        2.60               2.65
func (p Perftest) parseTable(out string) (float64, error) {
	column, scale := "t_typical[usec]", 1.0
	if strings.HasSuffix(string(p), "_bw") {
		column, scale = "average[MB/sec]", (1<<20)/1e6
	}
	lines := strings.Split(out, "\n")
	for i, line := range lines[:len(lines)-1] {
		// The column names "BW peak" and "BW average" contain a blank.
		head := strings.Fields(strings.ReplaceAll(line, "BW ", ""))
		k := slices.Index(head, column)
		values := strings.Fields(lines[i+1])
		if k < 0 || k >= len(values) {
			continue
		}
		v, err := strconv.ParseFloat(values[k], 64)
		if err != nil || v <= 0 {
			return 0, fmt.Errorf("peers: %s printed %q", p, lines[i+1])
		}
		return v * scale, nil
	}
	return 0, fmt.Errorf("peers: %s printed no table: %q", p, out)
}

const ucxPerftest = "ucx_perftest" // Debian: ucx-utils

// HasUCX reports whether UCX's benchmark is installed.
func HasUCX() bool {
	_, err := exec.LookPath(ucxPerftest)
	return err == nil
}

// UCXLatency returns half a round trip of tagged messages of size bytes over a UCX transport
// ("tcp"), in microseconds: the median of iters.
func UCXLatency(ctx context.Context, transport string, size, iters int) (float64, error) {
	return runUCX(ctx, "tag_lat", transport, size, iters, 2)
}

// UCXBandwidth returns the bandwidth of a stream of iters tagged messages of size bytes over a
// UCX transport, in MB/s.
func UCXBandwidth(ctx context.Context, transport string, size, iters int) (float64, error) {
	mib, err := runUCX(ctx, "tag_bw", transport, size, iters, 6)
	return mib * (1 << 20) / 1e6, err
}

// runUCX runs one test and returns a column of its last line. Column 1 is the number of
// iterations.
func runUCX(ctx context.Context, test, transport string, size, iters, column int) (float64, error) {
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	common := []string{"env", "UCX_TLS=" + transport, ucxPerftest, "-f", "-t", test, "-s", strconv.Itoa(size), "-n", strconv.Itoa(iters), "-p", port}
	out, err := runPair(ctx, common, append(common[:len(common):len(common)], "127.0.0.1"))
	if err != nil {
		return 0, err
	}
	return parseUCX(out, column)
}

// parseUCX parses the last line of the table:
//
//	#iterations  50.0%ile  average  overall  average  overall  average  overall
//	       1000     7.196   18.453  943.945     0.41     0.01    54192     1059
func parseUCX(out string, column int) (float64, error) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	fields := strings.Fields(strings.TrimPrefix(lines[len(lines)-1], "Final:"))
	if len(fields) != 8 {
		return 0, fmt.Errorf("peers: %s printed no figures: %q", ucxPerftest, out)
	}
	v, err := strconv.ParseFloat(fields[column-1], 64)
	if err != nil || v <= 0 {
		return 0, fmt.Errorf("peers: %s printed %q", ucxPerftest, lines[len(lines)-1])
	}
	return v, nil
}

// RXD is libfabric's provider of reliable datagrams over UDP sockets, which is built like this
// adapter.
const RXD = "udp;ofi_rxd"

const fiPingPong = "fi_pingpong" // Debian: libfabric-bin

// HasLibfabric reports whether libfabric's ping-pong is installed.
func HasLibfabric() bool {
	_, err := exec.LookPath(fiPingPong)
	return err == nil
}

// A FabricResult is the result of fi_pingpong for one message size.
type FabricResult struct {
	Micros float64 // half a round trip
	MBps   float64 // with one message in flight
}

// FabricPingPong runs libfabric's ping-pong with iters messages of size bytes over
// reliable-datagram endpoints of a provider.
func FabricPingPong(ctx context.Context, provider string, size, iters int) (FabricResult, error) {
	port, err := freePort()
	if err != nil {
		return FabricResult{}, err
	}
	common := []string{fiPingPong, "-p", provider, "-e", "rdm", "-I", strconv.Itoa(iters), "-S", strconv.Itoa(size)}
	server := append(common[:len(common):len(common)], "-B", port)
	client := append(common[:len(common):len(common)], "-P", port, "127.0.0.1")
	out, err := runPair(ctx, server, client)
	if err != nil {
		return FabricResult{}, err
	}
	return parseFabric(out)
}

// parseFabric parses the table that fi_pingpong prints, by its column
// names:
//
//	bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
//	64k     1k      =1k      125m        0.34s    389.75     168.15       0.01
func parseFabric(out string) (FabricResult, error) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) < 2 {
		return FabricResult{}, fmt.Errorf("peers: %s printed no table: %q", fiPingPong, out)
	}
	head, last := strings.Fields(lines[0]), strings.Fields(lines[len(lines)-1])
	column := func(name string) (float64, error) {
		for i, h := range head {
			if h == name && i < len(last) {
				return strconv.ParseFloat(last[i], 64)
			}
		}
		return 0, fmt.Errorf("no column %q", name)
	}
	micros, err := column("usec/xfer")
	if err == nil && micros <= 0 {
		err = fmt.Errorf("%v us", micros)
	}
	if err != nil {
		return FabricResult{}, fmt.Errorf("peers: %s printed %q: %w", fiPingPong, out, err)
	}
	mbps, err := column("MB/sec")
	if err != nil {
		return FabricResult{}, fmt.Errorf("peers: %s printed %q: %w", fiPingPong, out, err)
	}
	return FabricResult{Micros: micros, MBps: mbps}, nil
}
