package bench

import (
	"context"
	"encoding/json"
	"fmt"
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
