package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/env"
	"github.com/softrnic/softrnic/cmd/bench/internal/report"
	"github.com/softrnic/softrnic/cmd/internal/cmdline"
	"github.com/softrnic/softrnic/internal/link"
)

// tourTime leaves some seconds of the documented minute for starting and ending processes.
const tourTime = 55 * time.Second

// tourFile is the base name of the file with all figures of the tour.
const tourFile = "tour.txt"

var errTourOver = errors.New("tour: time limit reached")

// runTour runs the experiments of the tour briefly, writes all their figures into a file in
// dir, and prints one screen. With verbose it prints the content of the file too. Experiments
// that do not fit into the time of the tour are left out, which is not an error. Wrong data and
// failed checks are.
func (a *app) runTour(ctx context.Context, dir string, verbose bool) error {
	if err := report.CheckDir(dir); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	machine := env.Read()
	ctx, cancel := context.WithTimeoutCause(ctx, a.tourTime, errTourOver)
	defer cancel()
	experiments := slices.DeleteFunc(a.registry.All(), func(e *bench.Experiment) bool { return e.Tour == nil })
	var results []*bench.Result
	err := a.runAll(ctx, experiments, tourOptions, nil, func(res *bench.Result) error {
		results = append(results, res)
		return nil
	})
	if errors.Is(err, errTourOver) {
		err = summarizeFailures(results)
	}
	results = completedResults(results, context.Cause(ctx))
	err = errors.Join(err, summarizeChecks(results))

	path := filepath.Join(dir, tourFile)
	details := report.Details(machine, results)
	err = errors.Join(err, os.WriteFile(path, []byte(details), 0o666))
	if verbose {
		fmt.Fprintln(a.stdout, details)
	}
	notes := tourNotes(machine)
	if left := namesWithout(experiments, results); len(left) > 0 {
		reason := "no time for"
		if !errors.Is(context.Cause(ctx), errTourOver) {
			reason = "interrupted before"
		}
		notes = append([]string{reason + " " + strings.Join(left, ", ")}, notes...)
	}
	screen := report.Screen{Title: tourTitle(machine), Results: results, Notes: notes, Footer: tourFooter(path)}.Summary()
	if cmdline.IsTerminal(a.stdout) && os.Getenv("NO_COLOR") == "" {
		screen = headings.ReplaceAllString(screen, "\x1b[1m$0\x1b[m") // bold
	}
	fmt.Fprintln(a.stdout, screen)
	return err
}

// headings matches the headings of the screen.
var headings = regexp.MustCompile(`(?m)^[A-Z]{2,}\b`)

// tourOptions returns the options of an experiment in the tour.
func tourOptions(e *bench.Experiment) bench.Options {
	return bench.Options{Quick: true, Set: e.Tour}
}

// completedResults returns the results except for those interrupted by the end of the tour.
func completedResults(results []*bench.Result, end error) []*bench.Result {
	return slices.DeleteFunc(slices.Clone(results), func(res *bench.Result) bool { return end != nil && errors.Is(res.Err, end) })
}

// summarizeChecks returns an error that names the failed checks of experiments that ran to
// their end.
func summarizeChecks(results []*bench.Result) error {
	var failed []string
	for _, res := range results {
		if res.Err == nil {
			failed = append(failed, report.Failures(res)...)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d failed checks: %s", len(failed), strings.Join(failed, "; "))
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

// tourNotes returns notes about conditions that affect the figures.
func tourNotes(machine env.Fingerprint) (notes []string) {
	if probe := link.Probe(); probe.RecvBuffer > 0 && probe.RecvBuffer < link.DefaultRecvBuffer {
		notes = append(notes, fmt.Sprintf("socket buffers are %d KiB; %d KiB improve performance: see `softrnic doctor`",
			probe.RecvBuffer>>10, link.DefaultRecvBuffer>>10))
	}
	if load, err := strconv.ParseFloat(machine.Get("load"), 64); err == nil && load > float64(runtime.NumCPU()) {
		notes = append(notes, fmt.Sprintf("the machine was busy (load %.1f on %d cores), so the figures are worse than they could be", load, runtime.NumCPU()))
	}
	return notes
}

// tourFooter returns the lines about the file with the details and about further commands.
func tourFooter(path string) []string {
	return []string{
		"DETAIL  " + path + " has all figures of this run, with minimum, 99th percentile and maximum",
		"NEXT    go run ./cmd/bench list           experiments: their claims, and the papers they reproduce",
		"        go run ./cmd/bench run NAME       one experiment in full, with a verdict on its claim",
		"        go run ./cmd/bench report         all experiments, as a page with charts",
	}
}
