package datacutter

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// Filter is one stage of the processing. Its streams are its only connection
// to other filters.
type Filter interface {
	// Process handles one work: it takes units from its inputs until they end
	// and sends units to its outputs. What comes before the loop over the
	// units is DataCutter's init, what is deferred its finalize; a Filter
	// stays the same value from work to work.
	//
	// The runtime ends the outputs when Process returns, and skips what it
	// left unread. An error ends the whole run, on every host. ctx ends with
	// the run; Input and Output end with it by themselves.
	//
	// A Filter that is an io.Closer as well is closed after its last work.
	Process(ctx context.Context, w *Work) error
}

// FilterFunc is a Filter that keeps nothing between works.
type FilterFunc func(ctx context.Context, w *Work) error

// Process calls f.
func (f FilterFunc) Process(ctx context.Context, w *Work) error {
	if f == nil {
		return fmt.Errorf("%w: the filter's function is nil", ErrJob)
	}
	return f(ctx, w)
}

// Instance is one copy of a filter at its place.
type Instance struct {
	Group  int    // the instance of the filter group, from 0
	Filter string // the filter's name in the group
	Copy   int    // 0 to Copies-1
	Copies int    // of this filter in this instance of the group
	Host   string // where it runs
}

func (i Instance) compare(j Instance) int {
	return cmp.Or(cmp.Compare(i.Group, j.Group), cmp.Compare(i.Filter, j.Filter), cmp.Compare(i.Copy, j.Copy))
}

// String is "zoom[1] of group 2 on host b".
func (i Instance) String() string {
	return fmt.Sprintf("%s[%d] of group %d on host %s", i.Filter, i.Copy, i.Group, i.Host)
}

// Work is one unit of work as a filter instance sees it: an application's
// query, and the streams on which its data comes and goes.
type Work struct {
	Instance
	Number int    // index in Job.Works
	Query  []byte // Job.Works[Number]; shared, not to be changed

	inputs  []*Input
	outputs []*Output
}

// In returns the input with the name of its stream. A name that the filter
// does not have gives an Input whose Next says so.
func (w *Work) In(stream string) *Input {
	for _, in := range w.inputs {
		if in.stream.Name == stream {
			return in
		}
	}
	var names []string
	for _, in := range w.inputs {
		names = append(names, in.stream.Name)
	}
	return &Input{err: noStream(w.Instance, "input", stream, names)}
}

// Out returns the output with the name of its stream. A name that the filter
// does not have gives an Output whose Send says so.
func (w *Work) Out(stream string) *Output {
	for _, out := range w.outputs {
		if out.stream.Name == stream {
			return out
		}
	}
	var names []string
	for _, out := range w.outputs {
		names = append(names, out.stream.Name)
	}
	return &Output{err: noStream(w.Instance, "output", stream, names), stream: &Stream{}}
}

func noStream(i Instance, what, name string, have []string) error {
	return fmt.Errorf("%w: filter %s has no %s %q, only %q", ErrJob, i.Filter, what, name, strings.Join(have, ", "))
}
