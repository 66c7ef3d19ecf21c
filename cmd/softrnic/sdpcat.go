package main

import (
	"net"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/internal/tools/rdmacm"
	"github.com/softrnic/softrnic/internal/tools/sdpcat"
	"github.com/softrnic/softrnic/internal/tools/sockets"
)

const sdpCatLong = `Netcat over SDP: sends what it reads, and writes what comes. The end of the input is
passed on while the other direction goes on. On one machine:

    softrnic sdp cat -l -v 127.0.0.1 7471 &
    echo hello | softrnic sdp cat 127.0.0.1 7471

` + sdpWhere

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
	f.BoolVarP(&verbose, "verbose", "v", false, "say what happens, on stderr")
	sdpFlags(f, &o.SDP)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if a.json {
			return usage("--json cannot be: the output is the peer's")
		}
		if o.At, err = catPoint(args, o.Listen); err != nil {
			return usage("%w; `%s --help` tells more", err, c.CommandPath())
		}
		// Who reads our output may go away: the peer is to be told, which a
		// process that the signal ends cannot.
		signal.Ignore(syscall.SIGPIPE)
		return a.withSockets(&o.SDP, func(p rdmacm.Place) error {
			o.Place, o.In, o.Out = p, c.InOrStdin(), a.stdout
			if verbose {
				o.Log = a.stderr
			}
			return sdpcat.Run(c.Context(), o)
		})
	}
	return c
}

// catPoint reads HOST PORT, HOST:PORT or, for a listener, PORT.
func catPoint(args []string, listen bool) (sockets.Point, error) {
	text := strings.Join(args, " ")
	switch {
	case len(args) == 2:
		text = net.JoinHostPort(args[0], args[1])
	case len(args) == 1 && listen && !strings.Contains(text, ":"):
		text = ":" + text
	}
	p, err := sockets.Parse(text)
	if err == nil && !listen && (p.Host == "" || p.Port == 0) {
		_, err = sockets.Parse("")
	}
	return p, err
}
