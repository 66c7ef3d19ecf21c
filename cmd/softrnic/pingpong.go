package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/internal/size"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/pingpong"
	"github.com/softrnic/softrnic/verbs"
)

const pingpongLong = `Exchanges messages with another process and prints the time: with softrnic on the
other side, or with ibv_%[1]s_pingpong(1) on a Linux machine with rdma_rxe or a
hardware adapter. Options and output are those of ibv_%[1]s_pingpong; exit
status 0 is success.

Without a host this is the server and waits on TCP port 18515; with one it is the
client. On one machine:

    softrnic pingpong %[1]s &
    softrnic pingpong %[1]s localhost

Each process needs an adapter address of its own, on UDP port 4791. On the loopback
interface that is a free address of 127.0.0.0/8. For a peer on another machine it is
the address of the interface with the route to the peer. --addr or SOFTRNIC_ADDR set
another one. The handshake carries the addresses. The original needs -g with the index
of a RoCE v2 GID:

    softrnic pingpong %[1]s              # on 192.0.2.1
    ibv_%[1]s_pingpong -g 1 192.0.2.1    # on the other machine

A client that sends nothing for 10 s, or an invalid handshake, is dropped, and the
server waits for the next one.`

func (a *app) pingpongCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "pingpong",
		Short: "Exchange messages (ibv_rc_pingpong and others)",
		Args:  unknownCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.pingpongKindCommand(pingpong.RC, "over a reliable connection (ibv_rc_pingpong)"),
		a.pingpongKindCommand(pingpong.UC, "over an unreliable connection (ibv_uc_pingpong)"),
		a.pingpongKindCommand(pingpong.UD, "in datagrams (ibv_ud_pingpong)"),
		a.pingpongKindCommand(pingpong.SRQ, "over many connections with one receive queue (ibv_srq_pingpong)"))
	return c
}

func (a *app) pingpongKindCommand(k pingpong.Kind, short string) *cobra.Command {
	o := pingpong.Defaults(k)
	t := &tool{app: a}
	mtu := o.MTU.Bytes()
	var unused unsupportedFlags
	c := &cobra.Command{
		Use:   string(k) + " [HOST]",
		Short: "Exchange messages " + short,
		Long:  fmt.Sprintf(pingpongLong, k),
		Args:  atMostOneHost,
	}
	f := c.Flags()
	f.IntVarP(&o.Port, "port", "p", o.Port, "listen on/connect to TCP `port`")
	f.StringVarP(&t.name, "ib-dev", "d", "", "use the `device` of this name")
	f.IntVarP(&o.IBPort, "ib-port", "i", o.IBPort, "use this `port` of the device")
	f.VarP(size.Var(&o.Size), "size", "s", "`bytes` of a message")
	f.IntVarP(&o.RxDepth, "rx-depth", "r", o.RxDepth, "`receives` posted at a time")
	f.IntVarP(&o.Iters, "iters", "n", o.Iters, "`messages` each way")
	f.IntVarP(&o.SL, "sl", "l", o.SL, "service `level`")
	f.BoolVarP(&o.Events, "events", "e", false, "wait for completion events instead of polling")
	f.IntVarP(&o.GIDIndex, "gid-idx", "g", o.GIDIndex, "`index` into the port's GID table")
	f.BoolVarP(&o.Check, "chk", "c", false, "compare the received data with the sent data")
	f.BoolVar(&a.json, "json", false, "write JSON instead")
	if k != pingpong.UD {
		f.VarP(size.Var(&mtu), "mtu", "m", "path MTU in `bytes`")
	}
	switch k {
	case pingpong.SRQ:
		f.IntVarP(&o.NumQP, "num-qp", "q", o.NumQP, "queue `pairs`")
		unused.add(f, "odp", "o", noODP)
	case pingpong.RC:
		unused.add(f, "odp", "o", noODP)
		unused.add(f, "iodp", "O", noODP)
		unused.add(f, "prefetch", "P", noODP)
		f.BoolVarP(&o.Times, "ts", "t", false, "report the times between received messages, by completions with timestamps")
		unused.add(f, "dm", "j", "the device has no memory of its own")
		unused.add(f, "new_send", "N", "there is one way to post")
	}
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if err := unused.rejectGiven(c); err != nil {
			return err
		}
		if err := o.MTU.UnmarshalText(fmt.Append(nil, mtu)); err != nil || mtu == 0 {
			return usageErrorf("-m %d: the MTU is 256, 512, 1024, 2048 or 4096", mtu)
		}
		if len(args) == 1 {
			o.Server = args[0]
		}
		if o.Device, err = t.openGiven(); err != nil {
			return err
		}
		if o.Device != nil {
			defer func() { err = errors.Join(err, o.Device.Close()) }()
		} else if o.Server == "" {
			if err := t.probeDevice(); err != nil {
				return err
			}
		}
		o.Open, o.Dropped, o.Listening, o.Out = t.openAtRoCEPort, t.reportDropped, t.announceTCP, a.stdout
		if a.json {
			o.Out = io.Discard
		}
		result, err := pingpong.Run(c.Context(), o)
		if a.json && result.Elapsed > 0 {
			err = errors.Join(err, json.NewEncoder(a.stdout).Encode(pingpongReport(k, o, result)))
		}
		return err
	}
	return c
}

// A pingpongJSON is the output of --json.
type pingpongJSON struct {
	Program     string       `json:"program"`
	Local       []recordJSON `json:"local"`
	Remote      []recordJSON `json:"remote"`
	Size        int          `json:"size"`
	Iters       int          `json:"iters"`
	Bytes       int64        `json:"bytes"`
	Seconds     float64      `json:"seconds"`
	MbitPerSec  float64      `json:"mbit_per_sec"`
	UsecPerIter float64      `json:"usec_per_iter"`
	Gaps        *gapsJSON    `json:"receive_gaps,omitempty"`
}

// A gapsJSON has the times between received messages in nanoseconds.
type gapsJSON struct {
	Min     int64 `json:"min_ns"`
	Max     int64 `json:"max_ns"`
	Average int64 `json:"average_ns"`
}

type recordJSON struct {
	LID uint16    `json:"lid"`
	QPN uint32    `json:"qpn"`
	PSN uint32    `json:"psn"`
	GID verbs.GID `json:"gid"`
}

func pingpongReport(k pingpong.Kind, o pingpong.Options, r pingpong.Result) pingpongJSON {
	j := pingpongJSON{Program: "ibv_" + string(k) + "_pingpong", Size: o.Size, Iters: r.Iters, Bytes: r.Bytes, Seconds: r.Elapsed.Seconds()}
	for _, x := range r.Local {
		j.Local = append(j.Local, recordJSON(x))
	}
	for _, x := range r.Remote {
		j.Remote = append(j.Remote, recordJSON(x))
	}
	if g := r.Gaps; g != nil {
		j.Gaps = &gapsJSON{g.Min.Nanoseconds(), g.Max.Nanoseconds(), g.Average.Nanoseconds()}
	}
	usec := float64(r.Elapsed) / 1e3
	j.MbitPerSec, j.UsecPerIter = float64(r.Bytes)*8/usec, usec/float64(r.Iters)
	return j
}
