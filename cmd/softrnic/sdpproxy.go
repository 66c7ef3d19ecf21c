package main

import (
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sdpproxy"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
)

const sdpProxyLong = `Relays connections between TCP and SDP. With a proxy on each side, programs without
RDMA communicate over it:

    softrnic sdp proxy --listen sdp:192.0.2.1:7471 --to tcp:localhost:80    # at the server
    softrnic sdp proxy --listen tcp:localhost:8080 --to sdp:192.0.2.1:7471  # at the client
    curl http://localhost:8080/

The end of one direction (half-close) and resets are relayed. A failed peer is detected
within 5 s, and its connections are reset. Failed connections are counted and reported
on stderr, those that the client has closed only with --verbose; other connections
continue. After an interrupt the proxy accepts no more connections, and the open ones
have the time of --grace. A second interrupt closes them immediately.

` + sdpHelp

func (a *app) sdpProxyCommand() *cobra.Command {
	var o sdpproxy.Options
	c := &cobra.Command{
		Use:   "proxy --listen POINT --to POINT",
		Short: "Relay connections between TCP and SDP",
		Long:  sdpProxyLong,
		Args:  noArgs,
	}
	f := c.Flags()
	f.Var(&o.Listen, "listen", "address to listen at: tcp:[HOST]:PORT or sdp:[HOST]:PORT")
	f.Var(&o.To, "to", "address to connect to: tcp:HOST:PORT or sdp:HOST:PORT")
	f.DurationVar(&o.DialTimeout, "dial-timeout", sdpproxy.DefaultDialTimeout, "timeout of a connection to --to")
	f.DurationVar(&o.Grace, "grace", 5*time.Second, "time that open connections have after an interrupt")
	f.BoolVarP(&o.Verbose, "verbose", "v", false, "report connections closed by clients as well")
	sdpFlags(f, &o.SDP)
	c.RunE = func(c *cobra.Command, _ []string) error {
		for _, name := range []string{"dial-timeout", "grace"} {
			if d, err := c.Flags().GetDuration(name); err != nil || d <= 0 {
				return usageErrorf("--%s %v: want a time such as 5s", name, d)
			}
		}
		return a.runSDPTool(c.Flags(), &o.SDP, func(p rdmacm.DeviceSource) error {
			o.DeviceSource, o.Log = p, a.stderr
			o.Listening = func(at net.Addr) { fmt.Fprintf(a.stderr, "%s to %s\n", sockets.FormatAddr(at), o.To) }
			o.Ending = func(open int) {
				if open > 0 {
					fmt.Fprintf(a.stderr, "no more connections are accepted; %d open ones have %v to end\n", open, o.Grace)
				}
			}
			t, err := sdpproxy.Run(c.Context(), o)
			if err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(t)
			}
			fmt.Fprintf(a.stdout, "%d connections, %d failed; %d bytes sent, %d received\n", t.Connections, t.Failed, t.BytesTo, t.BytesFrom)
			return nil
		})
	}
	return c
}
