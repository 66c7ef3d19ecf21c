package main

import (
	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/ucmatose"
	"github.com/softrnic/softrnic/internal/size"
)

const ucmatoseLong = `Makes a number of connections by RDMA-CM and sends messages both ways: with softrnic
on the other side, or with ucmatose(1) on a Linux machine with rdma_rxe or an
adapter in hardware. Options and output are those of ucmatose; exit status 0 is
success. With -s it is the client, without it the server. On one machine:

    softrnic ucmatose -b 127.0.0.1 -c 16 &
    softrnic ucmatose -s 127.0.0.1 -c 16

` + rdmacmHelp + `

Both sides need the same -c, -C and -S. A peer that does nothing for 30 s is an
error.`

func (a *app) ucmatoseCommand() *cobra.Command {
	o := ucmatose.Defaults()
	var unused unsupportedFlags
	c := &cobra.Command{
		Use:   "ucmatose [-s ADDRESS]",
		Short: "Connect by RDMA-CM and send messages both ways (ucmatose)",
		Long:  ucmatoseLong,
	}
	cmtoolFlags(c, &o.Options)
	f := c.Flags()
	f.VarP(rdmacm.PortSpace{To: &o.PortSpace}, "port-space", "P", "port space of the connections: tcp or ib")
	f.IntVarP(&o.Connections, "connections", "c", o.Connections, "number of `connections`")
	f.IntVarP(&o.Count, "count", "C", o.Count, "`messages` each way on every connection")
	f.VarP(size.Var(&o.Size), "size", "S", "`bytes` of a message")
	f.IntVarP(&o.Port, "port", "p", o.Port, "`port` of RDMA-CM")
	f.VarP(&o.AckTimeout, "ack-timeout", "a", "ACK timeout of our queue pairs, 4.096 us * 2^`code`")
	unused.add(f, "migrate", "m", "there are no event channels to migrate between")
	return a.rdmacmCommand(c, &unused, func(c *cobra.Command, p rdmacm.DeviceSource) error {
		o.DeviceSource, o.Out, o.Log = p, a.stdout, a.stderr
		o.Listening = (&tool{app: a}).announceCM
		return ucmatose.Run(c.Context(), o)
	})
}
