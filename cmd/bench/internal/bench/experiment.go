package bench

import (
	"context"
	"fmt"
	"strings"
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

// An Experiment measures this machine, and the figures judge its claims.
type Experiment struct {
	Name   string // on the command line: "udp-raw"
	Source string // a paper's figure, or Adapter
	Layer  Layer
	Claims []Statement // sentences that the figures reproduce or refute
	Axes   []Axis
	Params []Param  // parameters of --set
	Tour   Settings // parameters in the tour, which is also quick; nil: not part of the tour
	Run    func(ctx context.Context, r *Run) error
}

// Claim returns the sentences of all statements.
func (e *Experiment) Claim() string {
	sentences := make([]string, len(e.Claims))
	for i, s := range e.Claims {
		sentences[i] = s.Sentence
	}
	return strings.Join(sentences, " ")
}

// A Description is the object that `bench list --json` prints.
type Description struct {
	Experiment string                 `json:"experiment"`
	Source     string                 `json:"source"`
	Claim      string                 `json:"claim"`
	Statements []StatementDescription `json:"statements"`
	Layer      Layer                  `json:"layer"`
	Axes       []Axis                 `json:"axes"`
	Params     []Param                `json:"params"`
	Tour       bool                   `json:"tour"`
}

// A StatementDescription describes a statement and its outcome in a run, if there is one.
type StatementDescription struct {
	Source   string `json:"source"`
	Sentence string `json:"sentence"`
	Paper    string `json:"paper,omitempty"`
	Compared string `json:"compared"` // figures and limit in words
	Outcome  Word   `json:"outcome,omitempty"`
	Ours     string `json:"ours,omitempty"`
	Reason   string `json:"why,omitempty"`
}

// Describe returns the description of e with the outcomes of a run, which may be nil.
func (e *Experiment) Describe(outcomes []Outcome) Description {
	d := Description{e.Name, e.Source, e.Claim(), nil, e.Layer, nonNil(e.Axes), nonNil(e.Params), e.Tour != nil}
	for i, s := range e.Claims {
		line := StatementDescription{Source: e.SourceOf(i), Sentence: s.Sentence, Paper: s.Paper, Compared: s.Compare.String()}
		if i < len(outcomes) {
			line.Outcome, line.Ours, line.Reason = outcomes[i].Word, outcomes[i].Ours, outcomes[i].Reason
		}
		d.Statements = append(d.Statements, line)
	}
	return d
}

// nonNil returns an empty list for nil, so that JSON has [] and not null.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
