package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

// Progress is notified of the steps of an experiment. It is used by one goroutine only.
type Progress interface {
	Plan(steps int)    // sets the number of steps
	Step(desc string)  // begins the next step
	Writer() io.Writer // receives the stderr of workers, in whole lines
}

// Options are the options of Execute. The zero value runs in full and without progress.
type Options struct {
	Quick    bool
	Set      Settings
	Progress Progress        // nil: none
	OnRow    func(Row) error // called with every emitted row; may be nil
}

// A Run is the state of a running experiment, for its Run function. It is used by one goroutine
// only.
type Run struct {
	Quick bool

	e      *Experiment
	o      Options
	values map[string]any
	rows   []Row
	err    error // first invalid row
}

// A Result is the outcome of an experiment.
type Result struct {
	Experiment *Experiment
	Quick      bool      // mode of the run
	Set        Settings  // parameters changed by --set
	Rows       []Row     // includes rows emitted before an error
	Outcomes   []Outcome // of the statements of Experiment, in their order; none after an error
	Elapsed    time.Duration
	Err        error // the run failed or received wrong data
}

// ErrInterrupted is in the error of an experiment that the end of its context interrupted, whatever
// failed first: a signal to the process group also ends the workers.
var ErrInterrupted = errors.New("interrupted")

// Execute runs e. The result is never nil, and the returned error is its Err.
func Execute(ctx context.Context, e *Experiment, o Options) (*Result, error) {
	res := &Result{Experiment: e, Quick: o.Quick, Set: o.Set}
	start := time.Now()
	res.Rows, res.Err = runExperiment(ctx, e, o)
	res.Elapsed = time.Since(start)
	switch {
	case res.Err == nil:
		res.Outcomes = e.Judge(res.Rows, o.Quick, o.Set)
	case ctx.Err() != nil:
		res.Err = fmt.Errorf("%s: %w: %w", e.Name, ErrInterrupted, context.Cause(ctx))
	default:
		res.Err = fmt.Errorf("%s: %w", e.Name, res.Err)
	}
	return res, res.Err
}

func runExperiment(ctx context.Context, e *Experiment, o Options) ([]Row, error) {
	values, err := e.paramValues(o.Set, o.Quick)
	if err != nil {
		return nil, err
	}
	r := &Run{Quick: o.Quick, e: e, o: o, values: values}
	if o.Progress != nil {
		ctx = proc.WithStderr(ctx, o.Progress.Writer())
	}
	err = e.Run(ctx, r)
	switch {
	case err != nil:
	case r.err != nil:
		err = r.err
	case len(r.rows) == 0:
		err = errors.New("no figures measured")
	}
	return r.rows, err
}

// Emit adds a row. An invalid row fails the experiment.
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

// Rows returns the rows emitted so far.
func (r *Run) Rows() []Row { return r.rows }

// Plan sets the number of steps.
func (r *Run) Plan(steps int) {
	if r.o.Progress != nil {
		r.o.Progress.Plan(steps)
	}
}

// Step begins the next step and describes it.
func (r *Run) Step(format string, args ...any) {
	if r.o.Progress != nil {
		r.o.Progress.Step(fmt.Sprintf(format, args...))
	}
}

// The accessors below return the value of a declared parameter. They panic if the experiment
// does not declare a parameter of this name and kind.

// Int returns the value of a parameter of kind Int.
func (r *Run) Int(name string) int { return paramValue[int](r, name) }

// Ints returns the value of a parameter of kind Ints.
func (r *Run) Ints(name string) []int { return paramValue[[]int](r, name) }

// Float returns the value of a parameter of kind Float.
func (r *Run) Float(name string) float64 { return paramValue[float64](r, name) }

// Duration returns the value of a parameter of kind Duration or Pause.
func (r *Run) Duration(name string) time.Duration { return paramValue[time.Duration](r, name) }

// Pauses returns the value of a parameter of kind Pauses.
func (r *Run) Pauses(name string) []time.Duration { return paramValue[[]time.Duration](r, name) }

// Words returns the value of a parameter of kind Words.
func (r *Run) Words(name string) []string { return paramValue[[]string](r, name) }

func paramValue[T any](r *Run, name string) T {
	v, ok := r.values[name].(T)
	if !ok {
		panic(fmt.Sprintf("bench: experiment %s declares no parameter %q of type %T", r.e.Name, name, v))
	}
	return v
}
