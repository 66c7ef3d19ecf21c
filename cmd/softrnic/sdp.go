package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/internal/size"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sdpcat"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sdpproxy"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/sdp"
)

// sdpHelp is the part of the help about the addresses of adapters.
const sdpHelp = `An SDP listener has the adapter's address and UDP port 4791: HOST is an address of this
machine, by default a free one of the loopback interface. A dialing adapter has an
address with a route to the peer. --addr or SOFTRNIC_ADDR set another one, for both.`

func (a *app) sdpCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sdp",
		Short: "Sockets over RDMA: proxy and netcat",
		Long: "Sockets by the Sockets Direct Protocol, for programs without RDMA. In Go,\n" +
			"package sdp has them as net.Conn and net.Listener.",
		Args: unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.sdpProxyCommand(), a.sdpCatCommand())
	return c
}

// sdpFlags adds the flags of SDP connections.
func sdpFlags(f *pflag.FlagSet, o *sdp.Options) {
	f.TextVar(&o.FlowControl, "flow-control", sdp.NIC, "flow control `mode` of dialed connections: nic, rdma or credit")
	o.Buffers, o.BufferBytes, o.ZeroCopy, o.KeepAlive = sdp.DefaultBuffers, sdp.DefaultBufferBytes, sdp.DefaultZeroCopy, sockets.KeepAlive
	f.IntVar(&o.Buffers, "buffers", o.Buffers, "`number` of buffers for each direction")
	f.Var(size.Var(&o.BufferBytes), "buffer-size", "size of a buffer in `bytes`, for example 64KiB")
	f.Var(size.Var(&o.Window), "window", "virtual window of nic in `bytes` (default half a buffer, at most 16 KiB, less 4)")
	f.Var(size.Var(&o.ZeroCopy), "zero-copy", "minimum `bytes` of a zero-copy transfer, in segments of 256 KiB; -1 is never")
	f.DurationVar(&o.KeepAlive, "keepalive", o.KeepAlive, "idle `time` before the peer is probed; -1s is never")
}

// checkSDPFlags refuses values that sdp.New would refuse, with the name of the flag and before a
// connection needs a stack, values that sdp.Options would take for unset, and negative ones other
// than -1.
func checkSDPFlags(f *pflag.FlagSet, o *sdp.Options) error {
	switch half := o.Buffers * o.BufferBytes / 2; {
	case o.Buffers < 1 || o.Buffers > 1<<14:
		return usageErrorf("--buffers %d: want 1 to 16384 of them", o.Buffers)
	case o.BufferBytes < 64 || o.BufferBytes > 1<<24:
		return usageErrorf("--buffer-size %d: want 64 to 16777216 bytes", o.BufferBytes)
	case half > 1<<29:
		return usageErrorf("--buffers %d of --buffer-size %d: want at most 1 GiB of them", o.Buffers, o.BufferBytes)
	case f.Changed("window") && (o.Window < 1 || o.FlowControl == sdp.NIC && o.Window > half):
		return usageErrorf("--window %d: want 1 to %d bytes, half of all buffers", o.Window, half)
	case o.ZeroCopy < -1 || o.ZeroCopy == 0:
		return usageErrorf("--zero-copy %d: want a number of bytes, at least 1, or -1 for never", o.ZeroCopy)
	case o.KeepAlive <= 0 && o.KeepAlive != -time.Second:
		return usageErrorf("--keepalive %v: want a time such as 30s, or -1s for never", o.KeepAlive)
	}
	return nil
}

// runSDPTool runs a tool of SDP with its device source.
func (a *app) runSDPTool(f *pflag.FlagSet, o *sdp.Options, run func(rdmacm.DeviceSource) error) (err error) {
	if err := checkSDPFlags(f, o); err != nil {
		return err
	}
	p := rdmacm.DeviceSource{Open: a.openAtPort}
	if a.addrGiven() {
		if p.Device, err = a.openAtPort(netip.AddrPort{}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Device.Close()) }()
	}
	err = run(p)
	if wrong := (*option.Error)(nil); errors.As(err, &wrong) {
		return usageErrorf("%w", err)
	}
	return err
}

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
