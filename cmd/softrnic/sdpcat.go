package main

import (
	"errors"
	"fmt"
	"net"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sdpcat"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
)

const sdpCatLong = `Netcat over SDP: sends its input and writes the received data. The end of the input
closes one direction, and the other continues. On one machine:

    softrnic sdp cat -l -v 127.0.0.1 7471 &
    echo hello | softrnic sdp cat 127.0.0.1 7471

` + sdpHelp

func (a *app) sdpCatCommand() *cobra.Command {
	var o sdpcat.Options
	var verbose bool
	c := &cobra.Command{
		Use:   "cat HOST PORT | cat -l [HOST] PORT",
		Short: "Send and receive a stream over SDP (netcat)",
		Long:  sdpCatLong,
	}
	f := c.Flags()
	f.BoolVarP(&o.Listen, "listen", "l", false, "wait for a connection instead of dialing")
	f.BoolVarP(&verbose, "verbose", "v", false, "report events on stderr")
	sdpFlags(f, &o.SDP)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if a.json {
			return usageErrorf("--json: not supported: the output is that of the peer")
		}
		if o.Addr, err = parseCatAddr(args, o.Listen); err != nil {
			return usageErrorf("%w: want `%s`; see --help", err, c.UseLine())
		}
		// The reader of stdout may exit. SIGPIPE would end the process before it
		// can reset the connection.
		signal.Ignore(syscall.SIGPIPE)
		return a.runSDPTool(c.Flags(), &o.SDP, func(p rdmacm.DeviceSource) error {
			o.DeviceSource, o.In, o.Out = p, c.InOrStdin(), a.stdout
			switch {
			case verbose:
				o.Log = a.stderr
			case o.Listen && (o.Addr.Host == "" || o.Addr.Port == 0): // the peer cannot know the address
				o.Listening = func(at net.Addr) { fmt.Fprintln(a.stderr, "listening at", sockets.FormatAddr(at)) }
			}
			return sdpcat.Run(c.Context(), o)
		})
	}
	return c
}

// parseCatAddr parses HOST PORT, HOST:PORT or, for a listener, PORT.
func parseCatAddr(args []string, listen bool) (p sockets.Addr, err error) {
	switch {
	case len(args) == 0:
		return p, errors.New("the address of the peer is missing")
	case len(args) > 2:
		return p, fmt.Errorf("unexpected argument %q", args[2])
	case len(args) == 2 && strings.HasPrefix(args[0], "["):
		p, err = sockets.ParseAddr(args[0] + ":" + args[1])
	case len(args) == 2:
		p, err = sockets.ParseAddr(net.JoinHostPort(args[0], args[1]))
	case listen && !strings.Contains(args[0], ":"):
		p, err = sockets.ParseAddr(":" + args[0])
	case !strings.Contains(args[0], ":"):
		return p, fmt.Errorf("%q: want a host and a port", args[0])
	default:
		p, err = sockets.ParseAddr(args[0])
	}
	switch {
	case err != nil:
	case p.Network != sockets.SDP:
		err = fmt.Errorf("%v: want an address of SDP", p)
	case !listen && p.Host == "":
		err = fmt.Errorf("%q: host is missing", strings.Join(args, " "))
	case !listen && p.Port == 0:
		err = fmt.Errorf("%q: port is missing", strings.Join(args, " "))
	}
	return p, err
}
