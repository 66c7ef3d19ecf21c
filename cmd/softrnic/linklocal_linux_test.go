package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/netns"
)

// TestLinkLocalTools runs the server of each tool at one end of a cable between two network
// namespaces and the client at the other, on link-local addresses. AT is the server's address, HERE
// the client's.
func TestLinkLocalTools(t *testing.T) {
	quiet(t)
	a, b := netns.NewTest(t), netns.NewTest(t)
	at, here := netns.ConnectTestVeth(a, b, "cable0")
	for _, c := range []struct{ server, client string }{
		{"rping -s -a AT -C 1", "rping -c -a AT -C 1"},
		{"rping -s -C 1", "rping -c -a AT -C 1 -I HERE"}, // at every address
		{"ucmatose -b AT", "ucmatose -s AT"},
		{"ucmatose --addr AT", "ucmatose -s AT --addr HERE"},
		{"udaddy -b AT", "udaddy -s AT"},
		{"pingpong rc", "pingpong rc AT"},
		{"pingpong ud --addr AT", "pingpong ud AT --addr HERE"},
		{"perf write_bw -n 100", "perf write_bw -n 100 AT"},
		{"perf send_lat -n 100 -R", "perf send_lat -n 100 -R AT"},
		{"perf send_lat -n 100 --bind_source_ip AT", "perf send_lat -n 100 --bind_source_ip HERE AT"},
		{"sdp cat -l AT 7471", "sdp cat AT 7471"},
		{"sdp cat -l --addr AT 7471", "sdp cat AT 7471 --addr HERE"},
	} {
		t.Run(c.server, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			fill := strings.NewReplacer("AT", at.String(), "HERE", here.String())
			var s *process
			a.Do(func() { s = start(t, ctx, fill.Replace(c.server)) })
			ended := make(chan error, 1)
			go func() { ended <- s.cmd.Wait() }()
			var said string
			for err := error(nil); ; { // until the server listens
				var p *process
				b.Do(func() { p = start(t, ctx, fill.Replace(c.client)) })
				if err = p.cmd.Wait(); err == nil {
					break
				}
				said = p.diag.String()
				require.NoError(t, ctx.Err(), said)
				require.Empty(t, ended, "server: %s client: %s", &s.diag, said)
			}
			require.NoError(t, <-ended, s.diag.String())
		})
	}
}
