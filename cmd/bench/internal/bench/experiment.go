package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
)

// Adapter is the Source of experiments that do not come from a paper.
const Adapter = "the adapter itself"

// A Layer is a protocol layer that an experiment measures. Lists of experiments are in the order
// of the layers.
type Layer int

const (
	LayerAll    Layer = iota // several layers, measured in alternation
	LayerUDP                 // the socket, without an adapter
	LayerVerbs               // the adapter
	LayerSDP                 // sockets over it
	LayerMPI                 // message passing over it
	LayerACP                 // channels over it
	LayerDomain              // applications
)

var layerNames = [...]string{"all layers", "UDP", "verbs", "SDP", "MPI", "ACP", "applications"}

// String implements fmt.Stringer.
func (l Layer) String() string {
	if l < 0 || int(l) >= len(layerNames) {
		return fmt.Sprintf("Layer(%d)", int(l))
	}
	return layerNames[l]
}

// MarshalText returns the name of the layer.
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// An Axis is a quantity that an experiment varies.
type Axis struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
}

// An Experiment measures this machine and evaluates one claim.
type Experiment struct {
	Name   string // on the command line: "udp-raw"
	Source string // a paper's figure, or Adapter
	Claim  string // one sentence that the figures confirm or refute
	Layer  Layer
	Axes   []Axis
	Params []Param  // parameters of --set
	Tour   Settings // parameters in the tour, which is also quick; nil: not part of the tour
	Run    func(ctx context.Context, r *Run) (Verdict, error)
}

// MarshalJSON returns the object that `bench list --json` prints.
func (e *Experiment) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Experiment string  `json:"experiment"`
		Source     string  `json:"source"`
		Claim      string  `json:"claim"`
		Layer      Layer   `json:"layer"`
		Axes       []Axis  `json:"axes"`
		Params     []Param `json:"params"`
		Tour       bool    `json:"tour"`
	}{e.Name, e.Source, e.Claim, e.Layer, nonNil(e.Axes), nonNil(e.Params), e.Tour != nil})
}

// nonNil returns an empty list for nil, so that JSON has [] and not null.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// A Verdict reports whether the claim holds on this machine, and the reason.
type Verdict struct {
	Holds   bool
	Reason  string   // the deciding figures, in a sentence
	Checks  []Check  // the comparisons behind it; may be empty
	Remarks []string // comments that do not affect the verdict; also in Reason
}

// A Check is one comparison of a figure with the limit that the claim sets.
type Check struct {
	Description string  `json:"description"`      // figure and limit as text
	Figure      float64 `json:"figure,omitempty"` // compared value
	Limit       float64 `json:"limit,omitempty"`  // 0: the check has no limit
	Holds       bool    `json:"holds"`
	Exact       bool    `json:"exact,omitempty"` // the outcome does not depend on the length of the run
}

// NearLimit reports whether the figure is within the fraction band of its limit: 0.2 means 20
// %. It is false if there is no limit.
func (c Check) NearLimit(band float64) bool {
	return c.Limit != 0 && math.Abs(c.Figure/c.Limit-1) <= band
}

// QuickBand is the fraction of a limit within which quick runs do not decide.
const QuickBand = 0.2

// IsInconclusive reports whether res is of a quick run that does not decide the claim: a figure
// is within QuickBand of its limit and none is beyond, or the claim does not hold and no check
// tells why.
func (res *Result) IsInconclusive() bool {
	if !res.Quick || res.Err != nil {
		return false
	}
	inconclusive := !res.Verdict.Holds
	for _, c := range res.Verdict.Checks {
		switch near := c.NearLimit(QuickBand); {
		case !c.Holds && (c.Exact || !near && c.Limit != 0):
			return false
		case near:
			inconclusive = true
		}
	}
	return inconclusive
}

// FailedChecks returns the descriptions of the exact checks that do not hold. They count in quick
// runs, too.
func (v Verdict) FailedChecks() (list []string) {
	for _, c := range v.Checks {
		if c.Exact && !c.Holds {
			list = append(list, c.Description)
		}
	}
	return list
}

// Decisive returns the check that misses its limit by the largest fraction, or, if all checks
// hold, the one nearest to its limit. It returns nil if no check has a limit.
func (v Verdict) Decisive() *Check {
	var decisive *Check
	worst := math.Inf(-1)
	for i, c := range v.Checks {
		if c.Limit == 0 {
			continue
		}
		miss := math.Abs(c.Figure/c.Limit - 1)
		if c.Holds {
			miss = -miss
		}
		if miss > worst {
			decisive, worst = &v.Checks[i], miss
		}
	}
	return decisive
}
