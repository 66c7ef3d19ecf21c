package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/internal/cmdline"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/debugclient"
	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/rnic"
)

type statFlags struct {
	of         string
	qp         string
	all        bool
	prometheus bool
	watch      time.Duration
}

func (a *app) statCommand() *cobra.Command {
	var f statFlags
	c := &cobra.Command{
		Use:   "stat [TARGET]",
		Short: "Show the counters of devices that processes have open",
		Long: "Shows the counters of the devices of all processes of this user that have a debug\n" +
			"endpoint (SOFTRNIC_DEBUG=auto), or of the TARGET, which --of also takes. Counters have the names\n" +
			"of rdma-statistic(8). Those that are 0 are omitted without --all.",
		Args: targetArg(&f.of),
		RunE: func(c *cobra.Command, _ []string) error { return a.runStat(c.Context(), f) },
	}
	targetFlags(c, &f.of, &f.qp)
	c.Flags().BoolVarP(&f.all, "all", "a", false, "show counters that are 0 as well")
	c.Flags().BoolVar(&f.prometheus, "prometheus", false, "write Prometheus' text format, with a label pid")
	c.Flags().DurationVarP(&f.watch, "watch", "w", 0, "repeat at this interval, with rates, until interrupted")
	c.AddCommand(a.historyCommand())
	return c
}

// targetFlags adds the flags of commands that inspect processes.
func targetFlags(c *cobra.Command, of, qp *string) {
	c.Flags().StringVar(of, "of", "", "one process, program, device or endpoint: 4711, ib_write_bw, softrnic0, 4711/softrnic0, unix:/path, 127.0.0.1:9479")
	c.Flags().StringVar(qp, "qp", "", "one queue pair by its number, such as 17 or 0x11")
}

// targetArg accepts the value of --of as an argument.
func targetArg(of *string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return nil
		case len(args) > 1:
			return usageErrorf("%s takes one process or device, got %q", c.CommandPath(), args)
		case *of != "":
			return usageErrorf("%s: --of %s and %q: want one of them", c.CommandPath(), *of, args[0])
		}
		*of = args[0]
		return nil
	}
}

func (a *app) runStat(ctx context.Context, f statFlags) error {
	switch {
	case f.watch < 0:
		return usageErrorf("--watch %v: want an interval such as 1s", f.watch)
	case f.prometheus && (a.json || f.watch > 0 || f.qp != ""):
		return usageErrorf("--prometheus: only --of is permitted with it")
	}
	if err := checkQP(f.qp); err != nil {
		return err
	}
	var before []debugclient.Peer
	for {
		peers, err := a.findPeers(ctx, f.of)
		if f.watch > 0 && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if peers, err = filterQP(peers, f.qp); err != nil {
			return err
		}
		if err := a.showStat(peers, before, f); err != nil {
			return err
		}
		if f.watch == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(f.watch):
		}
		before = peers
	}
}

// showStat writes one sample in the requested format.
func (a *app) showStat(peers, before []debugclient.Peer, f statFlags) error {
	switch {
	case f.prometheus:
		return writeMetrics(a.stdout, peers)
	case a.json && f.watch > 0:
		return writeJSONLine(a.stdout, reportsOf(peers))
	case a.json:
		return a.writeJSON(reportsOf(peers))
	}
	if f.watch > 0 && cmdline.IsTerminal(a.stdout) {
		fmt.Fprint(a.stdout, "\x1b[H\x1b[2J") // cursor to the top, rest erased
	}
	s := statText{w: a.stdout, all: f.all}
	for i := range peers {
		s.writeDevice(&peers[i].Report, previousReport(before, &peers[i]), f.qp != "")
	}
	return nil
}

// findPeers queries the devices that of names, or all. Devices that do not reply are reported and
// left out.
func (a *app) findPeers(ctx context.Context, of string) ([]debugclient.Peer, error) {
	find := debugclient.Discover
	if of != "" {
		find = func(ctx context.Context) ([]debugclient.Peer, error) { return debugclient.Find(ctx, of) }
	}
	peers, err := find(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if len(peers) == 0 {
		fmt.Fprintf(a.stderr, "softrnic: %v\n", debugclient.NoDevicesError())
	}
	return slices.DeleteFunc(peers, func(p debugclient.Peer) bool {
		if p.Err != nil {
			fmt.Fprintf(a.stderr, "softrnic: process %d: no reply: %v\n", p.PID, p.Err)
		}
		return p.Err != nil
	}), nil
}

// checkQP returns a usageError for an invalid --qp.
func checkQP(number string) error {
	if _, err := debug.ParseQPN(number); number != "" && err != nil {
		return usageErrorf("--qp: %w", err)
	}
	return nil
}

// filterQP keeps the queue pair that number names and its devices. Without a number it keeps all.
func filterQP(peers []debugclient.Peer, number string) ([]debugclient.Peer, error) {
	if number == "" {
		return peers, nil
	}
	num, err := debug.ParseQPN(number)
	if err != nil {
		return nil, usageErrorf("--qp: %w", err)
	}
	peers = slices.DeleteFunc(peers, func(p debugclient.Peer) bool {
		return !slices.ContainsFunc(p.Report.QPs, func(q rnic.QPInfo) bool { return q.Num == num })
	})
	if len(peers) == 0 {
		return nil, fmt.Errorf("no queue pair %s", debug.FormatQPN(num))
	}
	for i := range peers {
		qps := &peers[i].Report.QPs
		*qps = slices.DeleteFunc(*qps, func(q rnic.QPInfo) bool { return q.Num != num })
	}
	return peers, nil
}

// reportsOf returns the reports of the peers.
func reportsOf(peers []debugclient.Peer) []debugclient.Report {
	list := make([]debugclient.Report, len(peers))
	for i, p := range peers {
		list[i] = p.Report
	}
	return list
}

// previousReport returns the peer's report of the previous sample, or nil.
func previousReport(before []debugclient.Peer, p *debugclient.Peer) *debugclient.Report {
	for i := range before {
		if before[i].Client.Addr() == p.Client.Addr() && before[i].PID == p.PID {
			return &before[i].Report
		}
	}
	return nil
}
