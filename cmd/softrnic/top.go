package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/internal/cmdline"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/debugclient"
)

func (a *app) topCommand() *cobra.Command {
	interval, tables := time.Second, 0
	c := &cobra.Command{
		Use:   "top",
		Short: "Show the traffic of all devices, refreshed, the busiest first",
		Long: "Shows a table of the devices of all processes of this user that have a debug endpoint, as\n" +
			"programs under softrnic run have: the rates since the previous table, and the errors since\n" +
			"the device was opened. It ends when interrupted, or after the tables of -n.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case interval <= 0:
				return usageErrorf("--interval %v: want a time such as 1s", interval)
			case tables < 0:
				return usageErrorf("--number %d: want a number of tables", tables)
			}
			return a.runTop(c.Context(), interval, tables)
		},
	}
	c.Flags().DurationVarP(&interval, "interval", "d", interval, "time between two tables")
	c.Flags().IntVarP(&tables, "number", "n", tables, "number of tables; 0 is no limit")
	return c
}

// A topRow is a row of the table: a device with its rates.
type topRow struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	Device  string `json:"device"`
	Addr    string `json:"addr"`
	QPs     int    `json:"qps"`

	SentPackets     float64 `json:"sent_pkts_per_s"`
	ReceivedPackets float64 `json:"rcvd_pkts_per_s"`
	SentBytes       float64 `json:"sent_bytes_per_s"` // payload
	ReceivedBytes   float64 `json:"rcvd_bytes_per_s"` // payload
	Retransmitted   float64 `json:"retransmitted_pkts_per_s"`
	Errors          uint64  `json:"errors"` // failed requests and dropped packets since the device was opened
}

// runTop writes tables until the number of them, if not 0, or the end of ctx.
func (a *app) runTop(ctx context.Context, interval time.Duration, tables int) error {
	before, err := debugclient.Discover(ctx)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for written := 0; tables == 0 || written < tables; written++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		peers, err := debugclient.Discover(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := a.writeTop(topRows(peers, before), written > 0); err != nil {
			return err
		}
		before = peers
	}
	return nil
}

// topRows returns the rows of the devices, the busiest first.
func topRows(peers, before []debugclient.Peer) []topRow {
	rows := []topRow{}
	for i := range peers {
		if p := &peers[i]; p.Err == nil {
			rows = append(rows, newTopRow(&p.Report, previousReport(before, p)))
		}
	}
	slices.SortStableFunc(rows, func(a, b topRow) int {
		return cmp.Compare(b.SentBytes+b.ReceivedBytes, a.SentBytes+a.ReceivedBytes)
	})
	return rows
}

// newTopRow returns the row of a device. Without a previous report its rates are 0.
func newTopRow(now, before *debugclient.Report) topRow {
	row := topRow{PID: now.Process.PID, Command: now.Process.Command, Device: now.Device.Name, Addr: now.Device.Addr, QPs: len(now.QPs)}
	c := &now.Counters
	row.Errors = c.SendErr + c.RetryExceededErr + c.RetryRNRExceededErr
	for _, d := range now.Drops {
		row.Errors += d.Packets
	}
	if before == nil || !now.Time.After(before.Time) {
		return row
	}
	old, seconds := &before.Counters, now.Time.Sub(before.Time).Seconds()
	rate := func(now, old uint64) float64 { return float64(now-old) / seconds }
	row.SentPackets, row.ReceivedPackets = rate(c.SentPkts, old.SentPkts), rate(c.RcvdPkts, old.RcvdPkts)
	row.SentBytes, row.ReceivedBytes = rate(c.SentBytes, old.SentBytes), rate(c.RcvdBytes, old.RcvdBytes)
	row.Retransmitted = rate(c.Retransmitted, old.Retransmitted)
	return row
}

// writeTop writes a table, on a terminal in the place of the previous one.
func (a *app) writeTop(rows []topRow, again bool) error {
	if a.json {
		return writeJSONLine(a.stdout, rows)
	}
	switch {
	case cmdline.IsTerminal(a.stdout):
		fmt.Fprint(a.stdout, "\x1b[H\x1b[2J") // cursor to the top, rest erased
	case again:
		fmt.Fprintln(a.stdout)
	}
	return writeTopTable(a.stdout, rows)
}

func writeTopTable(w io.Writer, rows []topRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PID\tprogram\tdevice\taddress\tQPs\tsent/s\treceived/s\tpackets sent/s\treceived/s\tretransmitted/s\terrors")
	for _, r := range rows {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%d\t%s\t%s\t%.0f\t%.0f\t%.0f\t%d\n", r.PID, r.Command, r.Device, r.Addr, r.QPs,
			formatRate(r.SentBytes), formatRate(r.ReceivedBytes), r.SentPackets, r.ReceivedPackets, r.Retransmitted, r.Errors)
	}
	return t.Flush()
}

// formatRate formats a number of bytes a second with a decimal unit: "1.5 MB".
func formatRate(n float64) string {
	units := []string{"B", "kB", "MB", "GB"}
	i := 0
	for ; n >= 999.5 && i < len(units)-1; i++ {
		n /= 1000
	}
	if i == 0 {
		return fmt.Sprintf("%.0f %s", n, units[i])
	}
	return fmt.Sprintf("%.3g %s", n, units[i])
}
