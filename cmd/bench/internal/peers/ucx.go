package peers

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

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
