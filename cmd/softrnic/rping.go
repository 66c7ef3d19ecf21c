package main

import (
	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/internal/size"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rping"
)

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
