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
