package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/debugclient"
	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/rnic"
)

func (a *app) historyCommand() *cobra.Command {
	var of, qp string
	c := &cobra.Command{
		Use:   "history",
		Short: "Show the last packets and state transitions of queue pairs",
		Long: "Shows the flight recorder of each queue pair, or of the one given by --qp: the last\n" +
			"packets sent (->) and received (<-), and the state transitions, with their age.",
		Args: targetArg(&of),
		RunE: func(c *cobra.Command, _ []string) error { return a.runHistory(c.Context(), of, qp) },
	}
	targetFlags(c, &of, &qp)
	return c
}

// A qpHistory is the history of a queue pair with its process and device.
type qpHistory struct {
	PID    int    `json:"pid"`
	Device string `json:"device"`
	Now    int64  `json:"now_ns"` // on the device's clock
	rnic.QPInfo
}

func (a *app) runHistory(ctx context.Context, of, qp string) error {
	if err := checkQP(qp); err != nil {
		return err
	}
	peers, err := a.findPeers(ctx, of)
	if err != nil {
		return err
	}
	if peers, err = filterQP(peers, qp); err != nil {
		return err
	}
	list := []qpHistory{}
	for _, p := range peers {
		for _, q := range p.Report.QPs {
			info, err := p.Client.QP(ctx, q.Num)
			if errors.Is(err, debugclient.ErrNoQP) {
				continue // destroyed meanwhile
			}
			if err != nil {
				return err
			}
			list = append(list, qpHistory{p.PID, p.Report.Device.Name, p.Report.Now, info})
		}
	}
	if a.json {
		return a.writeJSON(list)
	}
	for _, h := range list {
		a.printHistory(h)
	}
	return nil
}

func (a *app) printHistory(h qpHistory) {
	fmt.Fprintf(a.stdout, "%s  process %d  %s QP %s  %s\n", h.Device, h.PID, h.Type, debug.FormatQPN(h.Num), h.State)
	now := h.Now
	for _, e := range h.History {
		now = max(now, e.At) // events between the two requests
	}
	for _, e := range h.History {
		ago := "" // the recorder begins without knowing the time
		if e.At > 0 {
			ago = fmt.Sprintf("%.3f ms ago", float64(now-e.At)/1e6)
		}
		fmt.Fprintf(a.stdout, "  %20s  %s\n", ago, e.Text)
	}
}
