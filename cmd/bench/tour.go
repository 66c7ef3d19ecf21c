package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/internal/bench"
	"github.com/softrnic/softrnic/internal/bench/report"
)

// tourTime leaves some seconds of the promised minute for starting and ending
// processes.
const tourTime = 55 * time.Second

var errTourOver = errors.New("the tour's time is over")

// tour runs the experiments that have a place in it, briefly, and prints a
// table per layer. What does not fit into its time is left out, which is no
// failure.
func (a *app) tour(ctx context.Context) error {
	a.describeMachine()
	ctx, cancel := context.WithTimeoutCause(ctx, a.tourTime, errTourOver)
	defer cancel()
	var failures []error
	for _, layer := range a.tourLayers() {
		err := a.tourLayer(ctx, layer)
		if errors.Is(err, errTourOver) {
			break
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	fmt.Fprintln(a.stdout, "`bench list` shows all experiments, `bench run NAME` measures one thoroughly, `bench report` makes a page of all.")
	return errors.Join(failures...)
}

// tourLayers are the experiments of the tour, those of a layer together.
func (a *app) tourLayers() (layers [][]*bench.Experiment) {
	for _, e := range a.registry.All() {
		switch n := len(layers); {
		case e.Tour == nil:
		case n > 0 && layers[n-1][0].Layer == e.Layer:
			layers[n-1] = append(layers[n-1], e)
		default:
			layers = append(layers, []*bench.Experiment{e})
		}
	}
	return layers
}

func (a *app) tourLayer(ctx context.Context, experiments []*bench.Experiment) error {
	var results []*bench.Result
	err := a.runAll(ctx, experiments, tourOptions, func(res *bench.Result) error {
		results = append(results, res)
		return nil
	})
	fmt.Fprintln(a.stdout, report.LayerTable(experiments[0].Layer, results))
	for _, res := range results {
		if errors.Is(res.Err, errTourOver) {
			fmt.Fprintf(a.stdout, "%s\nwas not done when the tour's time was over\n\n", res.Experiment.Name)
			continue
		}
		fmt.Fprintf(a.stdout, "%s\n%s\n\n", res.Experiment.Name, report.Outcome(res))
	}
	return err
}

// tourOptions run an experiment briefly, with its own settings for the tour.
func tourOptions(e *bench.Experiment) bench.Options {
	return bench.Options{Quick: true, Set: e.Tour}
}
