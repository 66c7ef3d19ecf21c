package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// Progress hears how far an experiment has come. Implementations are for one
// goroutine.
type Progress interface {
	Plan(steps int)    // how many steps there will be
	Step(what string)  // the next step begins
	Writer() io.Writer // where workers' stderr goes meanwhile, whole lines at a time
}

// Options of Execute. The zero value runs in full and silently.
type Options struct {
	Quick    bool
	Set      Settings
	Progress Progress        // nil: none
	OnRow    func(Row) error // called with every row when it comes; may be nil
}

// A Run is an experiment in progress, as its Run function sees it. It is for
// one goroutine.
type Run struct {
	Quick bool

	e      *Experiment
	o      Options
	values map[string]any
	rows   []Row
	err    error // the first row that could not be used
}

// A Result is what an experiment gave.
type Result struct {
	Experiment *Experiment
	Quick      bool     // as it was run
	Set        Settings // parameters that were changed
	Rows       []Row    // also those from before an error
	Verdict    Verdict
	Elapsed    time.Duration
	Err        error // could not run, or an answer was wrong; then there is no verdict
}

// Execute runs e. The result is never nil; its Err is also returned.
func Execute(ctx context.Context, e *Experiment, o Options) (*Result, error) {
	res := &Result{Experiment: e, Quick: o.Quick, Set: o.Set}
	start := time.Now()
	res.Rows, res.Verdict, res.Err = runExperiment(ctx, e, o)
	res.Elapsed = time.Since(start)
	if res.Err != nil {
		res.Err = fmt.Errorf("%s: %w", e.Name, res.Err)
	}
	return res, res.Err
}

func runExperiment(ctx context.Context, e *Experiment, o Options) ([]Row, Verdict, error) {
	values, err := e.paramValues(o.Set, o.Quick)
	if err != nil {
		return nil, Verdict{}, err
	}
	r := &Run{Quick: o.Quick, e: e, o: o, values: values}
	if o.Progress != nil {
		ctx = proc.WithStderr(ctx, o.Progress.Writer())
	}
	v, err := e.Run(ctx, r)
	switch {
	case err != nil:
	case r.err != nil:
		err = r.err
	case len(r.rows) == 0:
		err = errors.New("it measured nothing")
	case v.Reason == "":
		err = errors.New("its verdict gives no reason")
	}
	return r.rows, v, err
}

// Emit adds a row. A row that makes no sense fails the experiment.
func (r *Run) Emit(row Row) {
	row.Experiment = r.e.Name
	err := row.checkFigures()
	if err == nil {
		r.rows = append(r.rows, row)
		if r.o.OnRow != nil {
			err = r.o.OnRow(row)
		}
	}
	if r.err == nil {
		r.err = err
	}
}

// Rows are those emitted so far.
func (r *Run) Rows() []Row { return r.rows }

// Plan says how many steps there will be.
func (r *Run) Plan(steps int) {
	if r.o.Progress != nil {
		r.o.Progress.Plan(steps)
	}
}

// Step says what is being measured from here on.
func (r *Run) Step(format string, args ...any) {
	if r.o.Progress != nil {
		r.o.Progress.Step(fmt.Sprintf(format, args...))
	}
}

// The accessors below return the value of a parameter that the experiment
// declares. Another name or kind panics: that is a mistake in the experiment.

// Int is the value of a parameter of kind Int.
func (r *Run) Int(name string) int { return paramValue[int](r, name) }

// Ints is the value of a parameter of kind Ints.
func (r *Run) Ints(name string) []int { return paramValue[[]int](r, name) }

// Float is the value of a parameter of kind Float.
func (r *Run) Float(name string) float64 { return paramValue[float64](r, name) }

// Duration is the value of a parameter of kind Duration or Pause.
func (r *Run) Duration(name string) time.Duration { return paramValue[time.Duration](r, name) }

// Pauses is the value of a parameter of kind Pauses.
func (r *Run) Pauses(name string) []time.Duration { return paramValue[[]time.Duration](r, name) }

// Words is the value of a parameter of kind Words.
func (r *Run) Words(name string) []string { return paramValue[[]string](r, name) }

func paramValue[T any](r *Run, name string) T {
	v, ok := r.values[name].(T)
	if !ok {
		panic(fmt.Sprintf("bench: experiment %s declares no parameter %q of type %T", r.e.Name, name, v))
	}
	return v
}
