package bench

import (
	"context"
	"encoding/json"
	"fmt"
)

// Adapter is the Source of experiments that come from no paper.
const Adapter = "the adapter itself"

// A Layer is the floor of the house that an experiment looks at. The tour goes
// from the lowest up.
type Layer int

const (
	LayerUDP    Layer = iota // the socket, without an adapter
	LayerVerbs               // the adapter
	LayerSDP                 // sockets over it
	LayerMPI                 // message passing over it
	LayerACP                 // channels over it
	LayerDomain              // applications
)

var layerNames = [...]string{"UDP", "verbs", "SDP", "MPI", "ACP", "applications"}

func (l Layer) String() string {
	if l < 0 || int(l) >= len(layerNames) {
		return fmt.Sprintf("Layer(%d)", int(l))
	}
	return layerNames[l]
}

// MarshalText writes the layer's name.
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// An Axis is what an experiment varies.
type Axis struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
}

// An Experiment is a question that is asked of this machine.
type Experiment struct {
	Name   string // as on the command line: "udp-raw"
	Source string // where the question comes from: a paper's figure, or Adapter
	Claim  string // one sentence that the figures bear out or not
	Layer  Layer
	Axes   []Axis
	Params []Param  // what --set can change
	Tour   Settings // for the tour, which is quick besides; nil if it has no place there
	Run    func(ctx context.Context, r *Run) (Verdict, error)
}

// MarshalJSON writes what `bench list --json` prints.
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

// nonNil makes an empty list of nil, for readers of JSON.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
