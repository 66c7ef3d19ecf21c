package main

import (
	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rping"
	"github.com/softrnic/softrnic/internal/size"
)

const rpingLong = `Connects by RDMA-CM and lets the server read and write the client's memory: with
softrnic on the other side, or with rping(1) on a Linux machine with rdma_rxe or an
adapter in hardware. Options and output are those of rping; exit status 0 is
success. On one machine:

    softrnic rping -s -a 127.0.0.1 &
    softrnic rping -c -a 127.0.0.1 -v -V -C 10

` + rdmacmHelp + `

A peer that does nothing for 30 s, or nonsense, is an error. A persistent server
(-P) tells of it and goes on serving.`

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
	f.StringVarP(&o.Addr, "address", "a", "", "`address` of the server: to wait at, or to connect to")
	f.StringVarP(&o.Source, "source", "I", "", "`address` of the client, to connect from")
	f.IntVarP(&o.Port, "port", "p", o.Port, "`port` of RDMA-CM")
	f.BoolVarP(&o.Verbose, "verbose", "v", false, "print the data")
	f.BoolVarP(&o.Validate, "validate", "V", false, "compare the data")
	f.BoolVarP(&o.Debug, "debug", "d", false, "say what happens")
	f.IntVarP(&o.Count, "count", "C", 0, "`pings` of a client (default: for ever)")
	f.VarP(size.Var(&o.Size), "size", "S", "`bytes` of a ping")
	f.BoolVarP(&o.Persistent, "persistent", "P", false, "serve any number of clients, until killed")
	unused.add(f, "self-create-qp", "q", "there is one way to make queue pairs, the program's own")
	return a.rdmacmCommand(c, &unused, func(c *cobra.Command, p rdmacm.DeviceSource) error {
		if server == o.Client {
			return usageErrorf("give either -s, to be the server, or -c, to be the client")
		}
		t := &tool{app: a}
		o.DeviceSource, o.Out, o.Log, o.Dropped, o.Listening = p, a.stdout, a.stderr, t.reportDropped, t.announceCM
		return rping.Run(c.Context(), o)
	})
}
