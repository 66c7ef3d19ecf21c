package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/internal/size"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
)

const ucmatoseLong = `Establishes connections by RDMA-CM and sends messages in both directions: with
softrnic on the other side, or with ucmatose(1) on a Linux machine with rdma_rxe or a
hardware adapter. Options and output are those of ucmatose; exit status 0 is
success. With -s it is the client, without it the server. On one machine:

    softrnic ucmatose -b 127.0.0.1 -c 16 &
    softrnic ucmatose -s 127.0.0.1 -c 16

` + rdmacmHelp + `

Both sides need the same -c, -C and -S. A peer that is silent for 30 s is an error.`

const udaddyLong = `Resolves datagram queue pairs by RDMA-CM and sends datagrams in both directions: with
softrnic on the other side, or with udaddy(1) on a Linux machine with rdma_rxe or a
hardware adapter. Options and output are those of udaddy; exit status 0 is
success. With -s it is the client, without it the server. On one machine:

    softrnic udaddy -b 127.0.0.1 &
    softrnic udaddy -s 127.0.0.1

` + rdmacmHelp + `

Both sides need the same -c, -C and -S. Lost datagrams are not retransmitted; a peer
that is silent for 30 s is an error.`

func (a *app) ucmatoseCommand() *cobra.Command {
	o := cmtool.Defaults(cmtool.RC)
	c := &cobra.Command{
		Use:   "ucmatose [-s ADDRESS]",
		Short: "Connect by RDMA-CM and exchange messages (ucmatose)",
		Long:  ucmatoseLong,
	}
	f := c.Flags()
	f.VarP(rdmacm.PortSpace{To: &o.PortSpace}, "port-space", "P", "port space of the connections: tcp or ib")
	f.IntVarP(&o.Connections, "connections", "c", o.Connections, "number of `connections`")
	f.IntVarP(&o.Count, "count", "C", o.Count, "`messages` in each direction of a connection")
	f.VarP(size.Var(&o.Size), "size", "S", "`bytes` of a message")
	f.IntVarP(&o.Port, "port", "p", o.Port, "`port` of RDMA-CM")
	f.VarP(&o.AckTimeout, "ack-timeout", "a", "ACK timeout of the local queue pairs, 4.096 us * 2^`code`")
	var unused unsupportedFlags
	unused.add(f, "migrate", "m", "event channels do not exist")
	return a.cmtoolCommand(c, &o, &unused, func() error { return nil })
}

func (a *app) udaddyCommand() *cobra.Command {
	o := cmtool.Defaults(cmtool.UD)
	number, name := "0x111", "udp"
	c := &cobra.Command{
		Use:   "udaddy [-s ADDRESS]",
		Short: "Resolve queue pairs by RDMA-CM and exchange datagrams (udaddy)",
		Long:  udaddyLong,
	}
	f := c.Flags()
	f.IntVarP(&o.Connections, "connections", "c", o.Connections, "`number` of pairs of queue pairs")
	f.IntVarP(&o.Count, "count", "C", o.Count, "`datagrams` in each direction of a pair")
	f.VarP(size.Var(&o.Size), "size", "S", "`bytes` of a datagram, up to the MTU")
	f.StringVarP(&number, "port-space-number", "p", number, "port `space` by its number: 0x111 (UDP)")
	f.StringVarP(&name, "port-space", "P", name, "port `space`: udp")
	return a.cmtoolCommand(c, &o, &unsupportedFlags{}, func() error { return udaddySpace(number, name) })
}

// cmtoolCommand completes a command that runs cmtool with o. check returns an error for an invalid
// flag.
func (a *app) cmtoolCommand(c *cobra.Command, o *cmtool.Options, unused *unsupportedFlags, check func() error) *cobra.Command {
	f := c.Flags()
	f.StringVarP(&o.Server, "server", "s", "", "`address` of the server to connect to")
	f.StringVarP(&o.Bind, "bind", "b", "", "`address` of this side")
	f.VarP(&o.Format, "format", "f", "form of addresses: name, ip or ipv6")
	f.Uint8VarP(&o.TOS, "tos", "t", 0, "type of service (traffic `class`) of sent packets")
	return a.rdmacmCommand(c, unused, func(c *cobra.Command, p rdmacm.DeviceSource) error {
		if err := check(); err != nil {
			return err
		}
		o.DeviceSource, o.Out, o.Log = p, a.stdout, a.stderr
		o.Listening = (&tool{app: a}).announceCM
		return cmtool.Run(c.Context(), *o)
	})
}

// udaddySpace refuses port spaces but UDP.
func udaddySpace(number, name string) error {
	const ipoib, udp = 0x0002, 0x0111
	n, err := strconv.ParseUint(number, 0, 16)
	switch {
	case err != nil || n != ipoib && n != udp:
		return usageErrorf("-p %s: the port space is 0x111 (UDP)", number)
	case n == ipoib || strings.EqualFold(name, "ipoib"):
		return usageErrorf("port space IPoIB: not supported on Ethernet")
	case !strings.EqualFold(name, "udp"):
		return usageErrorf("-P %s: the port space is udp", name)
	}
	return nil
}
