// Package peers runs the benchmark programs of other implementations that are
// installed, as a user would: two processes on this
// machine, each pinned to a CPU like those of our own experiments.
//
//	if peers.HasLibfabric() {
//		f, err := peers.FabricPingPong(ctx, peers.RXD, 65536, 1000)
//		// f.Micros, f.MBps
//	}
package peers

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

const (
	worker = "peers"
	role   = "program"
)

// A client retries until its server listens.
const (
	clientTries = 100
	clientPause = 20 * time.Millisecond
)

func init() {
	proc.RegisterArgs(worker, role, func(ctx context.Context, w *proc.Worker, argv []string) error {
		return proc.Serve(ctx, w, func(ctx context.Context, _ struct{}) (string, error) {
			if w.Rank == 0 {
				return runProgram(ctx, argv)
			}
			return runClient(ctx, argv)
		})
	})
}

// runPair runs a server and a client until they exit and returns the client's output. They run
// below workers and inherit their CPU affinity.
func runPair(ctx context.Context, server, client []string) (string, error) {
	g, err := proc.Start(ctx, proc.Options{Pin: true},
		proc.Spec{Name: worker, Role: role, Args: server},
		proc.Spec{Name: worker, Role: role, Args: client})
	if err != nil {
		return "", err
	}
	defer g.Close()
	out, err := proc.Call[struct{}, string](ctx, g, struct{}{})
	if err != nil {
		return "", err
	}
	return out[1], nil
}

// runProgram runs a program until it exits and returns its output.
func runProgram(ctx context.Context, argv []string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	killWithParent(cmd)
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// runClient runs a client like runProgram, and retries until its server listens.
func runClient(ctx context.Context, argv []string) (out string, err error) {
	for range clientTries {
		if out, err = runProgram(ctx, argv); err == nil {
			return out, nil
		}
		select {
		case <-time.After(clientPause):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	return "", err
}

// freePort returns a TCP port of the loopback interface that was free at the time of the call.
func freePort() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}
