package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
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
