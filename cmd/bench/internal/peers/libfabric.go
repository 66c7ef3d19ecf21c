package peers

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

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
