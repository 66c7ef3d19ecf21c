package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/cmd/bench/internal/osu"
	"github.com/softrnic/softrnic/cmd/internal/size"
	"github.com/softrnic/softrnic/mpi"
)

func (a *app) osuCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "osu",
		Short: "OSU micro-benchmarks of MPI",
		Args:  noSubcommandArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, t := range osu.Tests() {
		c.AddCommand(a.osuTest(t))
	}
	return c
}

// osuFlags are the values of the flags.
type osuFlags struct {
	osu.Options
	iterations, warmup int
	size, typ, buffers string
	threads, root      string
	win, sync          string
	rate               int
}

func (a *app) osuTest(t osu.Test) *cobra.Command {
	o, j := osuFlags{Options: osu.Defaults(t)}, job{ranks: 2}
	if t.IsCollective() || t.Name == "mbw_mr" || t.Name == "multi_lat" {
		j.ranks = 4
	}
	c := &cobra.Command{Use: t.Name, Aliases: []string{"osu_" + t.Name}, Short: t.Title, Long: "osu_" + t.Name + ": " + t.Title + "." + jobHelp, Args: noArgs}
	f := c.Flags()
	j.addFlags(c)
	f.StringVarP(&o.size, "message-size", "m", fmt.Sprintf("%d:%d", o.Min, o.Max), "message size in bytes: `[MIN:]MAX`")
	f.IntVarP(&o.iterations, "iterations", "i", 0, fmt.Sprintf("`number` of iterations (default %d, above 8 KiB %d)", o.Small.Iterations, o.Large.Iterations))
	f.IntVarP(&o.warmup, "warmup", "x", 0, fmt.Sprintf("`number` of warm-up iterations (default %d, above 8 KiB %d)", o.Small.Warmup, o.Large.Warmup))
	f.BoolVarP(&o.Validate, "validation", "c", false, "validate received data")
	f.IntSliceVarP(&o.Tail, "tail-lat", "z", nil, "print `percentiles` (50,90,99 without a value)")
	f.Lookup("tail-lat").NoOptDefVal = "50,90,99"
	f.StringVarP(&o.typ, "type", "T", o.Type.String(), "element `type`: mpi_char, mpi_int, mpi_float or mpi_long")
	if t.IsOneSided() {
		f.StringVarP(&o.win, "win-option", "w", "allocate", "creation of windows: create, `allocate` or dynamic")
		f.StringVarP(&o.sync, "sync-option", "s", o.Sync.String(), "synchronization: lock, `flush`, flush_local, lock_all, pscw or fence")
	} else {
		f.BoolVarP(&o.Full, "full", "f", false, "print minimum and maximum times, and iterations")
	}
	switch t.Name {
	case "put_bw", "get_bw", "put_bibw":
		f.IntVarP(&o.Window, "window-size", "W", o.Window, "`number` of operations in a window")
	case "bw", "bibw", "mbw_mr":
		f.IntVarP(&o.Window, "window-size", "W", o.Window, "`number` of messages in a window")
		f.StringVarP(&o.buffers, "buffer-num", "b", "single", "buffers of a window: `single` or multiple")
	case "latency_mt", "latency_mp":
		f.StringVarP(&o.threads, "num-test-calls", "t", fmt.Sprintf("%d:%d", o.Senders, o.Receivers), "`[SENDERS:]RECEIVERS`: threads or processes of rank 0 and rank 1")
	}
	if t.Name == "mbw_mr" {
		f.IntVarP(&o.Pairs, "num-pairs", "p", 0, "`number` of pairs of ranks (default all)")
		f.IntVarP(&o.rate, "print-rate", "R", 1, "`1`: print the message rate, or 0")
	}
	if t.IsCollective() && t.Name != "barrier" {
		f.VarP(size.Var(&o.MemLimit), "mem-limit", "M", "memory limit of a rank in `bytes`")
		f.StringVarP(&o.root, "root-rank", "k", "fixed:0", "root of rooted collectives: `fixed:RANK` or rotate")
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := o.parseFlags(c); err != nil {
			return usageErrorf("%w", err)
		}
		check := func(ranks int) error { return o.Check(t, ranks) }
		return j.runRanks(a, c, check, func(w mpi.World) error {
			o.Out = a.stdout
			_, err := osu.Run(w.Comm, t, o.Options)
			return err
		})
	}
	return c
}

// parseFlags converts the flag values to options.
func (o *osuFlags) parseFlags(c *cobra.Command) (err error) {
	if c.Flags().Changed("message-size") { // MAX, MIN:MAX or MIN:
		low, high, both := strings.Cut(o.size, ":")
		if !both {
			low, high = "", low
		}
		if low != "" {
			o.Min, err = size.Parse(low)
		}
		if high != "" && err == nil {
			o.Max, err = size.Parse(high)
		}
		if err != nil || o.size == "" || o.size == ":" {
			return fmt.Errorf("-m %q: want [MIN:]MAX in bytes, such as 1:4K", o.size)
		}
	}
	if c.Flags().Changed("iterations") {
		o.Small.Iterations, o.Large.Iterations = o.iterations, o.iterations
	}
	if c.Flags().Changed("warmup") {
		o.Small.Warmup, o.Large.Warmup = o.warmup, o.warmup
	}
	if o.Type, err = osu.ParseType(o.typ); err != nil {
		return fmt.Errorf("-T: %w", err)
	}
	if o.sync != "" {
		if o.Sync, err = osu.ParseSync(o.sync); err != nil {
			return fmt.Errorf("-s: %w", err)
		}
	}
	if o.win != "" {
		if o.Creation, err = osu.ParseCreation(o.win); err != nil {
			return fmt.Errorf("-w: %w", err)
		}
	}
	switch o.buffers {
	case "", "single":
	case "multiple":
		o.Multiple = true
	default:
		return fmt.Errorf("-b %q: want single or multiple", o.buffers)
	}
	if o.threads != "" {
		senders, replies, both := strings.Cut(o.threads, ":")
		if !both {
			senders, replies = "1", senders
		}
		if o.Senders, err = strconv.Atoi(senders); err == nil {
			o.Receivers, err = strconv.Atoi(replies)
		}
		if err != nil {
			return fmt.Errorf("-t %q: want [SENDERS:]RECEIVERS", o.threads)
		}
	}
	if o.root != "" && o.root != "rotate" {
		rank, fixed := strings.CutPrefix(o.root, "fixed:")
		if o.Root, err = strconv.Atoi(rank); err != nil || !fixed {
			return fmt.Errorf("-k %q: want fixed:RANK or rotate", o.root)
		}
	}
	o.Rotate = o.root == "rotate"
	if c.Flags().Lookup("print-rate") != nil {
		if o.rate != 0 && o.rate != 1 {
			return fmt.Errorf("-R %d: want 0 or 1", o.rate)
		}
		o.NoRate = o.rate == 0
	}
	return nil
}
