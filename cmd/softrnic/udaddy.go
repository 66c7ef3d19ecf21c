package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/udaddy"
	"github.com/softrnic/softrnic/internal/size"
)

const udaddyLong = `Finds queue pairs for datagrams by RDMA-CM and sends datagrams both ways: with
softrnic on the other side, or with udaddy(1) on a Linux machine with rdma_rxe or an
adapter in hardware. Options and output are those of udaddy; exit status 0 is
success. With -s it is the client, without it the server. On one machine:

    softrnic udaddy -b 127.0.0.1 &
    softrnic udaddy -s 127.0.0.1

` + rdmacmHelp + `

Both sides need the same -c, -C and -S. What gets lost is not repeated; when nothing
comes for 30 s it is an error.`

func (a *app) udaddyCommand() *cobra.Command {
	o := udaddy.Defaults()
	number, name := "0x111", "udp"
	var unused unsupportedFlags
	c := &cobra.Command{
		Use:   "udaddy [-s ADDRESS]",
		Short: "Find queue pairs by RDMA-CM and send datagrams both ways (udaddy)",
		Long:  udaddyLong,
	}
	cmtoolFlags(c, &o.Options)
	f := c.Flags()
	f.IntVarP(&o.Connections, "connections", "c", o.Connections, "`number` of pairs of queue pairs")
	f.IntVarP(&o.Count, "count", "C", o.Count, "`datagrams` each way between two of them")
	f.VarP(size.Var(&o.Size), "size", "S", "`bytes` of a datagram, up to the MTU")
	f.StringVarP(&number, "port-space-number", "p", number, "port `space` by its number: 0x111 (UDP)")
	f.StringVarP(&name, "port-space", "P", name, "port `space`: udp")
	return a.rdmacmCommand(c, &unused, func(c *cobra.Command, p rdmacm.DeviceSource) error {
		if err := udaddySpace(number, name); err != nil {
			return err
		}
		o.DeviceSource, o.Out, o.Log = p, a.stdout, a.stderr
		o.Listening = (&tool{app: a}).announceCM
		return udaddy.Run(c.Context(), o)
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
