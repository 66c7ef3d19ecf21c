//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"time"
)

// WaitListen waits until a program in the guest listens on a TCP port.
func (g *Guest) WaitListen(ctx context.Context, port uint16) error {
	_, err := g.Output(ctx, "sh", "-c", fmt.Sprintf("until cat /proc/net/tcp /proc/net/tcp6 | grep -q %q; do usleep 20000; done", listenPattern(port)))
	return err
}

// WaitListenCM waits until a program in the guest listens for RDMA-CM connections.
func (g *Guest) WaitListenCM(ctx context.Context) error {
	_, err := g.Output(ctx, "sh", "-c", "until rdma resource show cm_id | grep -q LISTEN; do usleep 20000; done")
	return err
}

// WaitListen waits until a program on the host listens on a TCP port.
func WaitListen(ctx context.Context, port uint16) error {
	want := regexp.MustCompile(listenPattern(port))
	for {
		for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			if text, err := os.ReadFile(path); err == nil && want.Match(text) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no listener on TCP port %d: %w", port, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// listenPattern matches a line of /proc/net/tcp with local address, remote address and the state
// LISTEN.
func listenPattern(port uint16) string { return fmt.Sprintf(":%04X [0-9A-F]*:0000 0A", port) }
