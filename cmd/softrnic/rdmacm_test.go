package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRDMACMTools runs a server and a client of each tool, by their command lines.
func TestRDMACMTools(t *testing.T) {
	quiet(t)
	for _, c := range []struct{ server, client, serverOut, clientOut string }{
		{"rping -s -a 127.93.1.1 -v -V", "rping -c -a 127.93.1.1 -v -V -C 2 -I 127.93.1.2", "server ping data: rdma-ping-1: BCD", "ping data: rdma-ping-1: BCD"},
		{"rping -s -a 127.93.1.5 -v --wire iwarp", "rping -c -a 127.93.1.5 -v -C 2 -I 127.93.1.6 --wire iwarp", "server ping data: rdma-ping-1: BCD", "ping data: rdma-ping-1: BCD"},
		{"ucmatose -b 127.93.1.7 -c 2 --wire iwarp", "ucmatose -s 127.93.1.7 -c 2 -t 8 --wire iwarp", "disconnected\ntest complete\nreturn status 0\n", "sending replies\n"},
		{"ucmatose --addr 127.93.1.3 -c 2 -P ib -p 7000", "ucmatose -s 127.93.1.3 -c 2 -P ib -p 7000 -t 8 -f ip", "disconnected\ntest complete\nreturn status 0\n", "sending replies\n"},
		{"udaddy -b 127.93.1.4 -c 2 -S 500 -p 0x0111", "udaddy -s 127.93.1.4 -c 2 -S 500 -P UDP", "test complete\nreturn status 0\n", "data transfers complete\ntest complete\nreturn status 0\n"},
	} {
		t.Run(c.server, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var out, diag bytes.Buffer
			ended := make(chan int, 1)
			go func() { ended <- newApp(&out, &diag).runCommand(ctx, strings.Fields(c.server)) }()

			status, stdout, stderr := 1, "", ""
			for status != 0 && len(ended) == 0 && ctx.Err() == nil { // until the server listens
				status, stdout, stderr = run(t, newApp(nil, nil), c.client)
			}
			require.Zero(t, <-ended, diag.String())
			require.Zero(t, status, stderr)
			require.Contains(t, out.String(), c.serverOut)
			require.Contains(t, stdout, c.clientOut)
		})
	}
}

// TestRDMACMDifferentTests runs ends of different tests with each other: both exit at once, with status 1
// and the difference.
func TestRDMACMDifferentTests(t *testing.T) {
	quiet(t)
	for i, c := range []struct{ server, client, serverSays, clientSays string }{
		{"rping -s -a %s", "ucmatose -s %s -p 7174", "test is rping here and ucmatose at the peer", "test is ucmatose here and rping at the peer"},
		{"ucmatose -b %s -p 7174 -c 2", "rping -c -a %s -C 1", "test is ucmatose here and rping at the peer", "test is rping here and ucmatose at the peer"},
		{"ucmatose -b %s", "ucmatose -s %s -c 2 -S 1K", "-c is 1 here and 2 at the peer, -S is 100 here and 1024 at the peer", "-c is 2 here and 1 at the peer"},
		{"udaddy -b %s -C 3", "udaddy -s %s", "-C is 3 here and 10 at the peer", "-C is 10 here and 3 at the peer"},
	} {
		addr := fmt.Sprintf("127.93.2.%d", i+1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		server := start(t, ctx, fmt.Sprintf(c.server, addr))
		status, diag := 0, ""
		for ctx.Err() == nil { // until the server listens
			status, _, diag = run(t, newApp(nil, nil), fmt.Sprintf(c.client, addr))
			if strings.Contains(diag, "of the two ends differ") {
				break
			}
		}
		require.Equal(t, 1, status, diag)
		require.Contains(t, diag, c.clientSays)
		require.Error(t, server.cmd.Wait())
		require.Equal(t, 1, server.cmd.ProcessState.ExitCode())
		require.Contains(t, server.diag.String(), c.serverSays)
		cancel()
	}
}
