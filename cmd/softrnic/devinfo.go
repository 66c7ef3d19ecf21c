package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/verbs"
)

type devinfoFlags struct {
	name          string
	port          int
	list, verbose bool
}

func (a *app) devinfoCommand() *cobra.Command {
	var f devinfoFlags
	c := &cobra.Command{
		Use:   "devinfo",
		Short: "Show a device as ibv_devinfo does",
		Long: "Opens a device, at the address of --addr or SOFTRNIC_ADDR, and shows its attributes in\n" +
			"the format of ibv_devinfo(1), with the same flags. `softrnic stat` shows the devices\n" +
			"of other processes.",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.runDevinfo(f) },
	}
	c.Flags().StringVarP(&f.name, "ib-dev", "d", "", "show the device of this name only")
	c.Flags().IntVarP(&f.port, "ib-port", "i", 0, "show this port only (default all)")
	c.Flags().BoolVarP(&f.list, "list", "l", false, "show the names of the devices only")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show all attributes")
	return c
}

func (a *app) runDevinfo(f devinfoFlags) error {
	dev, err := a.openDefault()
	if err != nil {
		return err
	}
	defer dev.Close()
	switch {
	case f.name != "" && f.name != dev.Name():
		return fmt.Errorf("IB device %q not found; the device is %s", f.name, dev.Name())
	case f.port < 0 || f.port > dev.QueryDevice().PhysPortCnt:
		return usageErrorf("--ib-port %d: this adapter has one port, 1", f.port)
	case f.list && a.json:
		return a.writeJSON([]string{dev.Name()})
	case f.list:
		fmt.Fprintf(a.stdout, "1 HCA found:\n\t%s\n\n", dev.Name())
		return nil
	}
	l, err := describeDevice(dev, f.port, f.verbose)
	if err != nil {
		return err
	}
	if a.json {
		return a.writeJSON(l.object)
	}
	fmt.Fprint(a.stdout, l.text.String())
	return nil
}

// describeDevice returns the listing of ibv_devinfo for one port, or for all (0).
func describeDevice(dev verbs.Device, port int, verbose bool) (*listing, error) {
	l := newListing()
	l.writeDevice(dev.Name(), dev.QueryDevice(), verbose)
	for p := 1; p <= dev.QueryDevice().PhysPortCnt; p++ {
		if port != 0 && port != p {
			continue
		}
		attr, err := dev.QueryPort(p)
		if err != nil {
			return nil, err
		}
		var gids []verbs.GIDEntry
		for i := range attr.GIDTableLen {
			gid, err := dev.QueryGID(p, i)
			if err != nil {
				return nil, err
			}
			gids = append(gids, gid)
		}
		l.writePort(p, attr, gids, verbose)
	}
	return l, nil
}
