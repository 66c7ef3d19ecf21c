package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/internal/size"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rping"
	"github.com/softrnic/softrnic/verbs"
)

// rdmacmHelp is the part of the help about the addresses of both sides.
const rdmacmHelp = `The adapter uses UDP port 4791 for data and for connection requests; TCP is not used. A
server opens an adapter at every address of this machine, or at the given one. The port
is in use if rdma_rxe runs in the same network namespace. A client's adapter has the
address with the route to the server. --addr or SOFTRNIC_ADDR set another one.`

// rdmacmCommand completes the command of a program that connects by RDMA-CM. run gets the source
// of its device.
func (a *app) rdmacmCommand(c *cobra.Command, unused *unsupportedFlags, run func(*cobra.Command, rdmacm.DeviceSource) error) *cobra.Command {
	t := &tool{app: a}
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usageErrorf("%s takes no argument, got %q; `%s --help` lists the flags", c.CommandPath(), args[0], c.CommandPath())
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		if err := unused.rejectGiven(c); err != nil {
			return err
		}
		if a.json {
			return usageErrorf("--json: the command has no results to write")
		}
		var dev verbs.Device
		if dev, err = t.openGiven(); err != nil {
			return err
		}
		if dev != nil {
			defer func() { err = errors.Join(err, dev.Close()) }()
		}
		return run(c, rdmacm.DeviceSource{Device: dev, Open: t.openVerbsAt})
	}
	return c
}

const rpingLong = `Connects by RDMA-CM, and the server reads and writes the client's memory: with
softrnic on the other side, or with rping(1) on a Linux machine with rdma_rxe or a
hardware adapter. Options and output are those of rping; exit status 0 is
success. On one machine:

    softrnic rping -s -a 127.0.0.1 &
    softrnic rping -c -a 127.0.0.1 -v -V -C 10

` + rdmacmHelp + `

A peer that is silent for 30 s, or violates the protocol, is an error. A persistent
server (-P) reports it and continues to serve.`

func (a *app) rpingCommand() *cobra.Command {
	o := rping.Defaults()
	var server bool
	var unused unsupportedFlags
	c := &cobra.Command{
		Use:   "rping (-s | -c -a ADDRESS)",
		Short: "Ping by RDMA read and write over RDMA-CM (rping)",
		Long:  rpingLong,
	}
	f := c.Flags()
	f.BoolVarP(&server, "server", "s", false, "run as the server")
	f.BoolVarP(&o.Client, "client", "c", false, "run as the client")
	f.StringVarP(&o.Addr, "address", "a", "", "`address` of the server")
	f.StringVarP(&o.Source, "source", "I", "", "`address` of the client")
	f.IntVarP(&o.Port, "port", "p", o.Port, "`port` of RDMA-CM")
	f.BoolVarP(&o.Verbose, "verbose", "v", false, "print the data")
	f.BoolVarP(&o.Validate, "validate", "V", false, "compare the data")
	f.BoolVarP(&o.Debug, "debug", "d", false, "report each step")
	f.IntVarP(&o.Count, "count", "C", 0, "`pings` of a client (default: no limit)")
	f.VarP(size.Var(&o.Size), "size", "S", "`bytes` of a ping")
	f.BoolVarP(&o.Persistent, "persistent", "P", false, "serve any number of clients, until terminated")
	unused.add(f, "self-create-qp", "q", "queue pairs are always created by the program")
	return a.rdmacmCommand(c, &unused, func(c *cobra.Command, p rdmacm.DeviceSource) error {
		if server == o.Client {
			return usageErrorf("give either -s, to be the server, or -c, to be the client")
		}
		t := &tool{app: a}
		o.DeviceSource, o.Out, o.Log, o.Dropped, o.Listening = p, a.stdout, a.stderr, t.reportDropped, t.announceCM
		return rping.Run(c.Context(), o)
	})
}

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
