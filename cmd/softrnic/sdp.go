package main

import (
	"errors"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/internal/size"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
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
	p := rdmacm.DeviceSource{Open: a.openVerbs}
	if a.addrGiven() {
		if p.Device, err = a.openVerbs(netip.AddrPort{}); err != nil {
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

// openVerbs is openAtPort with an interface result; the zero AddrPort stands for any address.
func (a *app) openVerbs(at netip.AddrPort) (verbs.Device, error) {
	dev, err := a.openAtPort(at)
	if err != nil {
		return nil, err
	}
	return dev, nil
}
