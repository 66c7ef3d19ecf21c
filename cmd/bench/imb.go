package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/bench/internal/imb"
	"github.com/softrnic/softrnic/mpi"
)

// imbFlags are the values of the flags.
type imbFlags struct {
	imb.Options
	sizes, iter, policy, sync, warmUp string
	root                              int
	seconds, gigabytes                float64
	include, exclude                  []string
}

func (a *app) imbCommand() *cobra.Command {
	o, j := imbFlags{Options: imb.Defaults()}, job{ranks: 2}
	c := &cobra.Command{
		Use:   "imb [BENCHMARK]...",
		Short: "Intel MPI Benchmarks, MPI-1 part",
		Long:  imbHelp() + jobHelp,
	}
	j.addFlags(c)
	o.addFlags(c.Flags())
	c.RunE = func(c *cobra.Command, names []string) error {
		list, err := o.parseFlags(c.Flags(), names)
		if err != nil {
			return usageErrorf("%w", err)
		}
		check := func(ranks int) error { return o.Check(list, ranks) }
		return j.runRanks(a, c, check, func(w mpi.World) error {
			o.Out = a.stdout
			_, err := imb.Run(w.Comm, list, o.Options)
			return err
		})
	}
	return c
}

func imbHelp() string {
	var names []string
	for _, b := range imb.Benchmarks() {
		names = append(names, b.Name)
	}
	return "Runs the named benchmarks, or all of them:\n\n    " + strings.Join(names, "\n    ") +
		"\n\nFlags may have a single dash, as in the original: -npmin 4."
}

func (o *imbFlags) addFlags(f *pflag.FlagSet) {
	f.IntVar(&o.MinRanks, "npmin", o.MinRanks, "`number` of ranks of the first group")
	f.StringVar(&o.sizes, "msglog", fmt.Sprintf("%d:%d", o.MinLog, o.MaxLog), "`[MIN:]MAX`: sizes are 0 and 2^MIN to 2^MAX")
	f.IntSliceVar(&o.Sizes, "msgsize", nil, "`sizes` to measure instead of those of -msglog")
	f.StringVar(&o.iter, "iter", fmt.Sprintf("%d,%d", o.Repetitions, o.Volume>>20), "`REPETITIONS[,MB]`: maximum repetitions, and maximum MB sent by a rank")
	f.StringVar(&o.policy, "iter_policy", "dynamic", "`dynamic`: limit repetitions by -time, or off")
	f.Float64Var(&o.seconds, "time", o.Time.Seconds(), "`seconds` for one size")
	f.Float64Var(&o.gigabytes, "mem", float64(o.Memory)/(1<<30), "memory limit of a rank in `GB`")
	f.IntVar(&o.Window, "window_size", o.Window, "`number` of messages in flight in Uniband and Biband")
	f.IntVar(&o.root, "root_shift", 0, "`1`: each rank is the root in turn, or 0")
	f.StringVar(&o.sync, "sync", "1", "`1`: a barrier after each collective call, or 0")
	f.StringVar(&o.warmUp, "warm_up", "1", "`1`: warm-up before the measurement, or 0")
	f.StringSliceVar(&o.include, "include", nil, "`names` of additional benchmarks")
	f.StringSliceVar(&o.exclude, "exclude", nil, "`names` of benchmarks to skip")
}

// parseFlags converts the flag values to options, and returns the selected benchmarks.
func (o *imbFlags) parseFlags(f *pflag.FlagSet, names []string) (list []imb.Benchmark, err error) {
	if o.MinLog, o.MaxLog, err = parseSizeRange(o.sizes); err != nil {
		return nil, err
	}
	repetitions, volume, both := strings.Cut(o.iter, ",")
	if o.Repetitions, err = strconv.Atoi(repetitions); err == nil && both {
		if o.Volume, err = strconv.Atoi(volume); err == nil {
			o.Volume <<= 20
		}
	}
	if err != nil {
		return nil, fmt.Errorf("-iter %q: want REPETITIONS[,MB]", o.iter)
	}
	o.Time, o.Memory = time.Duration(o.seconds*float64(time.Second)), int(o.gigabytes*(1<<30))
	switch o.policy {
	case "dynamic":
	case "off":
		o.Time = 0
	default:
		return nil, fmt.Errorf("-iter_policy %q: want dynamic or off", o.policy)
	}
	if o.root != 0 && o.root != 1 {
		return nil, fmt.Errorf("-root_shift %d: want 0 or 1", o.root)
	}
	o.RootShift = o.root == 1
	for _, s := range []struct {
		name, value string
		off         *bool
	}{{"sync", o.sync, &o.NoSync}, {"warm_up", o.warmUp, &o.NoWarmUp}} {
		switch s.value {
		case "1", "on", "enable", "yes":
		case "0", "off", "disable", "no":
			*s.off = true
		default:
			return nil, fmt.Errorf("-%s %q: want 1 or 0", s.name, s.value)
		}
	}
	if list, err = imb.Find(append(names, o.include...)...); err != nil {
		return nil, err
	}
	for _, name := range o.exclude {
		if _, err := imb.Find(name); err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(b imb.Benchmark) bool { return strings.EqualFold(b.Name, name) })
	}
	return list, nil
}

func parseSizeRange(s string) (low, high int, err error) {
	from, to, both := strings.Cut(s, ":")
	if !both {
		from, to = "0", from
	}
	if low, err = strconv.Atoi(from); err == nil {
		high, err = strconv.Atoi(to)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("-msglog %q: want [MIN:]MAX", s)
	}
	return low, high, nil
}

// imbDashes adds a second dash to the flags of imb, which have a single dash in the original, and
// to unknown ones.
func imbDashes(args []string) []string {
	if at := slices.IndexFunc(args, func(s string) bool { return !strings.HasPrefix(s, "-") }); at < 0 || args[at] != "imb" {
		return args
	}
	var o imbFlags
	f := pflag.NewFlagSet("imb", pflag.ContinueOnError)
	o.addFlags(f)
	args = slices.Clone(args)
	for i, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		unknown := len(name) > 1 && name[0] != '-' && f.ShorthandLookup(name[:1]) == nil
		if strings.HasPrefix(arg, "-") && (f.Lookup(name) != nil || unknown && !isNumber(name)) {
			args[i] = "-" + arg
		}
	}
	return args
}

func isNumber(word string) bool {
	_, err := strconv.ParseFloat(word, 64)
	return err == nil
}
