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

const sdpProxyLong = `Passes connections on, from TCP to SDP or from SDP to TCP. With one at each side
programs that know nothing of RDMA talk over it:

    softrnic sdp proxy --listen sdp:192.0.2.1:7471 --to tcp:localhost:80    # there
    softrnic sdp proxy --listen tcp:localhost:8080 --to sdp:192.0.2.1:7471  # here
    curl http://localhost:8080/

Ends of one direction (half-close) and resets are passed on. A peer that has died is
noticed within 5 s, and what it leaves is reset. A connection that fails is told on
stderr and counted, a client that has just gone only with --verbose; others go on. After an interrupt no more are taken, and
those that there are have the time of --grace; a second one ends them at once.

` + sdpHelp

func (a *app) sdpProxyCommand() *cobra.Command {
	var o sdpproxy.Options
	c := &cobra.Command{
		Use:   "proxy --listen POINT --to POINT",
		Short: "Pass connections on between TCP and SDP",
		Long:  sdpProxyLong,
		Args:  noArgs,
	}
	f := c.Flags()
	f.Var(&o.Listen, "listen", "where connections come in: tcp:[HOST]:PORT or sdp:[HOST]:PORT")
	f.Var(&o.To, "to", "where they are passed on to: tcp:HOST:PORT or sdp:HOST:PORT")
	f.DurationVar(&o.DialTimeout, "patience", sdpproxy.DefaultDialTimeout, "how long a connection to there may take")
	f.DurationVar(&o.Grace, "grace", 5*time.Second, "how long connections may go on after an interrupt")
	f.BoolVarP(&o.Verbose, "verbose", "v", false, "say also which clients have gone")
	sdpFlags(f, &o.SDP)
	c.RunE = func(c *cobra.Command, _ []string) error {
		for _, name := range []string{"patience", "grace"} {
			if d, err := c.Flags().GetDuration(name); err != nil || d <= 0 {
				return usageErrorf("--%s %v: want a time such as 5s", name, d)
			}
		}
		return a.runSDPTool(c.Flags(), &o.SDP, func(p rdmacm.DeviceSource) error {
			o.DeviceSource, o.Log = p, a.stderr
			o.Listening = func(at net.Addr) { fmt.Fprintf(a.stderr, "%s to %s\n", sockets.FormatAddr(at), o.To) }
			o.Ending = func(open int) {
				if open > 0 {
					fmt.Fprintf(a.stderr, "no more connections are taken; %d have %v to end\n", open, o.Grace)
				}
			}
			t, err := sdpproxy.Run(c.Context(), o)
			if err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(t)
			}
			fmt.Fprintf(a.stdout, "%d connections, %d failed; %d bytes there, %d back\n", t.Connections, t.Failed, t.BytesTo, t.BytesFrom)
			return nil
		})
	}
	return c
}
