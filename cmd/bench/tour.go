package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/env"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
	"github.com/softrnic/softrnic/internal/cmdline"
	"github.com/softrnic/softrnic/internal/link"
)

// tourTime leaves some seconds of the documented minute for starting and ending processes.
const tourTime = 55 * time.Second

var errTourOver = errors.New("tour: time limit reached")

// runTour runs the experiments of the tour briefly and prints one screen of their figures, or
// with tables all figures and claims by layer. Experiments that do not fit into the time of the
// tour are skipped, which is not an error.
func (a *app) runTour(ctx context.Context, tables bool) error {
	machine := a.describeMachine()
	ctx, cancel := context.WithTimeoutCause(ctx, a.tourTime, errTourOver)
	defer cancel()
	var results []*bench.Result
	experiments := a.tourExperiments()
	err := a.runAll(ctx, experiments, tourOptions, nil, func(res *bench.Result) error {
		results = append(results, res)
		return nil
	})
	if errors.Is(err, errTourOver) {
		err = summarizeFailures(results)
	}
	if tables {
		a.printLayers(results)
		return err
	}
	done := completedResults(results, context.Cause(ctx))
	notes := tourNotes(machine)
	if left := namesWithout(experiments, done); len(left) > 0 {
		reason := "No time for"
		if !errors.Is(context.Cause(ctx), errTourOver) {
			reason = "Interrupted before"
		}
		notes = append([]string{fmt.Sprintf("%s %s.", reason, strings.Join(left, ", "))}, notes...)
	}
	screen := report.Summary(tourTitle(machine), done, a.registry.All(), notes)
	if cmdline.IsTerminal(a.stdout) && os.Getenv("NO_COLOR") == "" {
		screen = headings.ReplaceAllString(screen, "\x1b[1m$0\x1b[m") // bold
	}
	fmt.Fprintln(a.stdout, screen)
	return err
}

// headings matches the headings of the screen.
var headings = regexp.MustCompile(`(?m)^[A-Z]{2,}( [A-Z]{2,})*\b`)

// tourExperiments returns the experiments of the tour. Those shown on the screen come first,
// because the time may not suffice for all.
func (a *app) tourExperiments() []*bench.Experiment {
	var first, then []*bench.Experiment
	shown := report.HeadlineExperiments()
	for _, e := range a.registry.All() {
		switch {
		case e.Tour == nil:
		case slices.Contains(shown, e.Name):
			first = append(first, e)
		default:
			then = append(then, e)
		}
	}
	return append(first, then...)
}

// tourOptions returns the options of an experiment in the tour.
func tourOptions(e *bench.Experiment) bench.Options {
	return bench.Options{Quick: true, Set: e.Tour}
}

// completedResults returns the results except for those interrupted by the end of the tour.
func completedResults(results []*bench.Result, end error) []*bench.Result {
	return slices.DeleteFunc(slices.Clone(results), func(res *bench.Result) bool { return end != nil && errors.Is(res.Err, end) })
}

// namesWithout returns the names of the experiments without a result.
func namesWithout(experiments []*bench.Experiment, results []*bench.Result) (names []string) {
	for _, e := range experiments {
		if !slices.ContainsFunc(results, func(res *bench.Result) bool { return res.Experiment == e }) {
			names = append(names, e.Name)
		}
	}
	return names
}

// printLayers prints a table of every layer, and the claims of its experiments.
func (a *app) printLayers(results []*bench.Result) {
	byLayer := func(x, y *bench.Result) int { return int(x.Experiment.Layer - y.Experiment.Layer) }
	results = slices.SortedStableFunc(slices.Values(results), byLayer)
	for len(results) > 0 {
		layer := results[0].Experiment.Layer
		n := slices.IndexFunc(results, func(res *bench.Result) bool { return res.Experiment.Layer != layer })
		if n < 0 {
			n = len(results)
		}
		fmt.Fprintln(a.stdout, report.LayerTable(layer, results[:n]))
		for _, res := range results[:n] {
			outcome := report.Outcome(res)
			if errors.Is(res.Err, errTourOver) {
				outcome = "interrupted by the time limit of the tour"
			}
			fmt.Fprintf(a.stdout, "%s\n%s\n\n", res.Experiment.Name, outcome)
		}
		results = results[n:]
	}
}

// tourTitle returns a line with the version and the machine.
func tourTitle(machine env.Fingerprint) string {
	title := fmt.Sprintf("softrnic %s on %s x %s", cmp.Or(machine.Get("revision"), cmdline.ReadVersion().Version), machine.Get("cores"),
		cmp.Or(machine.Get("cpu"), machine.Get("system")))
	for _, fact := range []string{"kernel", "go"} {
		if value := machine.Get(fact); value != "" {
			title += ", " + value
		}
	}
	return title
}

// tourNotes returns notes about conditions that affect the figures, and about further commands.
func tourNotes(machine env.Fingerprint) (notes []string) {
	if probe := link.Probe(); probe.RecvBuffer > 0 && probe.RecvBuffer < link.DefaultRecvBuffer {
		notes = append(notes, fmt.Sprintf("Socket buffers are %d KiB; %d KiB improve performance: see `softrnic doctor`.",
			probe.RecvBuffer>>10, link.DefaultRecvBuffer>>10))
	}
	if load, err := strconv.ParseFloat(machine.Get("load"), 64); err == nil && load > float64(runtime.NumCPU()) {
		notes = append(notes, fmt.Sprintf("The machine was busy (load %.1f on %d cores): small differences are not significant.", load, runtime.NumCPU()))
	}
	return append(notes, "All figures: bench -v. One experiment in full: bench run NAME. HTML page: bench report.")
}
