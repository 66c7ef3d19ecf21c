package datacutter

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// Filter is one stage of the processing. It communicates with other filters by its streams only.
type Filter interface {
	// Process handles one work: it receives units from its inputs until they end, and sends units to its
	// outputs. Code before the loop over the units corresponds to DataCutter's init, deferred code to its
	// finalize. The same Filter value processes all works.
	//
	// When Process returns, the runtime ends the outputs and skips the unread units. An error ends the whole
	// run, on every host. ctx ends with the run, and so do calls of Input and Output.
	//
	// A Filter that implements io.Closer is closed after its last work.
	Process(ctx context.Context, w *Work) error
}

// FilterFunc is a Filter without state.
type FilterFunc func(ctx context.Context, w *Work) error

// Process calls f.
func (f FilterFunc) Process(ctx context.Context, w *Work) error {
	if f == nil {
		return fmt.Errorf("%w: FilterFunc is nil", ErrJob)
	}
	return f(ctx, w)
}

// Instance identifies one copy of a filter.
type Instance struct {
	Group  int    // instance of the filter group, from 0
	Filter string // the filter's name in the group
	Copy   int    // 0 to Copies-1
	Copies int    // number of copies of this filter in this instance of the group
	Host   string // host that runs it
}

func (i Instance) compare(j Instance) int {
	return cmp.Or(cmp.Compare(i.Group, j.Group), cmp.Compare(i.Filter, j.Filter), cmp.Compare(i.Copy, j.Copy))
}

// String returns a name such as "zoom[1] of group 2 on host b".
func (i Instance) String() string {
	return fmt.Sprintf("%s[%d] of group %d on host %s", i.Filter, i.Copy, i.Group, i.Host)
}

// Work is one unit of work of a filter instance: an application's query, and the streams of its data.
type Work struct {
	Instance
	Number int    // index in Job.Works
	Query  []byte // Job.Works[Number]; shared, so it must not be changed

	inputs  []*Input
	outputs []*Output
}

// In returns the input of a stream. If the filter has no such input, Next of the returned Input fails.
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

// Out returns the output of a stream. If the filter has no such output, Send of the returned Output fails.
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

// noStream returns the error of a filter that uses a stream that it does not have.
func noStream(i Instance, what, name string, have []string) error {
	return fmt.Errorf("%w: filter %s has no %s %q, only %q", ErrJob, i.Filter, what, name, strings.Join(have, ", "))
}
