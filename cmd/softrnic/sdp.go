package main

import (
	"errors"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/internal/size"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

// sdpHelp is the part of the help about the addresses of adapters.
const sdpHelp = `By SDP a listener waits at the adapter's address, on UDP port 4791: HOST is an
address of this machine, or without it a free one of the loopback interface. To dial,
an adapter opens at an address that leads to the peer. --addr or SOFTRNIC_ADDR name
another one, for both.`

func (a *app) sdpCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sdp",
		Short: "Sockets over RDMA: proxy and netcat",
		Long: "Sockets by the Sockets Direct Protocol, for programs that know nothing of RDMA. In Go,\n" +
			"package sdp has them as net.Conn and net.Listener.",
		Args: unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.sdpProxyCommand(), a.sdpCatCommand())
	return c
}

// sdpFlags adds the flags of SDP connections.
func sdpFlags(f *pflag.FlagSet, o *sdp.Options) {
	f.TextVar(&o.FlowControl, "design", sdp.NIC, "flow `control` of connections that we dial: nic, rdma or credit")
	o.Buffers, o.BufferBytes, o.ZeroCopy, o.KeepAlive = sdp.DefaultBuffers, sdp.DefaultBufferBytes, sdp.DefaultZeroCopy, sockets.KeepAlive
	f.IntVar(&o.Buffers, "buffers", o.Buffers, "`number` of buffers for each direction")
	f.Var(size.Var(&o.BufferBytes), "buffer-size", "`bytes` of each, for example 64KiB")
	f.Var(size.Var(&o.Window), "window", "virtual window of nic in `bytes` (default half a buffer, at most 16 KiB, less 4)")
	f.Var(size.Var(&o.ZeroCopy), "zero-copy", "`bytes` from which nothing is copied, of pieces of 256 KiB; -1 never")
	f.DurationVar(&o.KeepAlive, "keepalive", o.KeepAlive, "`time` without traffic after which the peer is asked whether it is there; -1s never")
}

// checkSDPFlags refuses values that sdp.Options would take for unset, and negative ones other than
// -1.
func checkSDPFlags(f *pflag.FlagSet, o *sdp.Options) error {
	switch {
	case o.Buffers == 0:
		return usageErrorf("--buffers 0: want 1 to 16384 of them")
	case o.BufferBytes == 0:
		return usageErrorf("--buffer-size 0: want 64 to 16777216 bytes")
	case o.Window <= 0 && f.Changed("window"):
		return usageErrorf("--window %d: want the bytes of one", o.Window)
	case o.ZeroCopy < -1 || o.ZeroCopy == 0:
		return usageErrorf("--zero-copy %d: want the bytes from which nothing is copied, at least 1, or -1 for never", o.ZeroCopy)
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
	if err := o.Validate(); err != nil {
		return usageErrorf("%w", err)
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
