package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/perftest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func (a *app) perfCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "perf",
		Short: "Measure bandwidth and latency (ib_send_bw and others of perftest)",
		Args:  unknownCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, t := range perftest.Tests {
		c.AddCommand(a.perfTestCommand(t))
	}
	return c
}

const perfLong = `Measures %[2]s, as ib_%[1]s of perftest, with softrnic or ib_%[1]s
on the other side. Options, columns and the handshake are those of ib_%[1]s; both
sides need the same test and the same -s, -n, -b and so on.

Without a host this is the server and waits on TCP port 18515; with one it is the
client. On one machine:

    softrnic perf %[1]s &
    softrnic perf %[1]s localhost

Each process needs an adapter address of its own, on UDP port 4791. On the loopback
interface that is a free address of 127.0.0.0/8. For a peer on another machine it is
the address of the interface with the route to the peer. --addr or SOFTRNIC_ADDR set
another one. The handshake carries the addresses.

MB and MiB are 2^20 bytes, Gb 10^9 bits. If the server measures nothing, it prints the
results of the client. --json and --out_json write the members of perftest's
--out_json; with -a, results is a list.

Exit status 0 is success; 1 is failure, or a result below -w or -y.`

func (a *app) perfTestCommand(test perftest.Test) *cobra.Command {
	what := "the bandwidth of "
	if test.Metric == perftest.Latency {
		what = "the latency of "
	}
	what += [...]string{"sends", "RDMA writes", "RDMA reads", "atomics"}[test.Verb]
	t := &tool{app: a}
	f := newPerfFlags(test)
	c := &cobra.Command{
		Use:   test.String() + " [HOST]",
		Short: "Measure " + what + " (ib_" + test.String() + ")",
		Long:  fmt.Sprintf(perfLong, test, what),
		Args:  atMostOneHost,
	}
	f.addFlags(c.Flags())
	c.Flags().BoolVar(&a.json, "json", false, "write JSON instead")
	c.Flags().StringVarP(&t.name, "ib-dev", "d", "", "use the `device` of this name")
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.version {
			fmt.Fprintf(a.stdout, "Version: %s\n", perftest.Version)
			return nil
		}
		o, err := f.testOptions(c, a.stderr)
		if err != nil {
			return err
		}
		if len(args) == 1 {
			o.Server = args[0]
		}
		return a.runPerf(c, t, f, o)
	}
	return c
}

// runPerf runs a test.
func (a *app) runPerf(c *cobra.Command, t *tool, f *perfFlags, o perftest.Options) (err error) {
	if o.Device, err = t.openGiven(); err != nil {
		return err
	}
	if o.Device != nil {
		defer func() { err = errors.Join(err, o.Device.Close()) }()
	} else if o.Server == "" && !o.RDMACM && !o.CommRDMACM {
		if err := t.probeDevice(); err != nil {
			return err
		}
	}
	o.Open = t.openVerbsAt
	if !o.RDMACM {
		o.Open = func(at netip.AddrPort) (verbs.Device, error) { return t.openAtRoCEPort(at.Addr()) }
	}
	o.Dropped, o.Counter = t.reportDropped, deviceCounter
	o.Listening = func(port int) {
		if o.RDMACM || o.CommRDMACM {
			t.announce(fmt.Sprintf("port %d of RDMA-CM", port))
		} else {
			t.announceTCP(port)
		}
	}
	o.Out, o.Log = a.stdout, a.stderr
	if a.json {
		o.Out = io.Discard
	}
	result, err := perftest.Run(c.Context(), o)
	if result == nil || len(result.Bandwidth)+len(result.Latency) == 0 {
		return err
	}
	text, jsonErr := result.JSON()
	if jsonErr != nil {
		return errors.Join(err, jsonErr)
	}
	if f.outJSON {
		err = errors.Join(err, os.WriteFile(f.outJSONFile, text, 0o666))
	}
	if a.json {
		_, writeErr := a.stdout.Write(text)
		err = errors.Join(err, writeErr)
	}
	return err
}

// deviceCounter reads a counter of a device of this process.
func deviceCounter(dev verbs.Device, name string) (uint64, bool) {
	d, ok := dev.(interface{ Inspect() rnic.Snapshot })
	if !ok {
		return 0, false
	}
	for have, value := range d.Inspect().Counters.All() {
		if have == name {
			return value, true
		}
	}
	return 0, false
}

// maxSeconds is the longest duration of a test: 11.6 days. Larger values, which may overflow
// time.Duration, and NaN are refused.
const maxSeconds = 1e6

// toDuration converts the seconds of a flag.
func toDuration(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
