package bench

import (
	"fmt"
	"slices"
	"strings"
)

// A Statement is one sentence of an experiment's claim. The rows of a run reproduce or refute
// it, or do not decide it; there is no statement that cannot be refuted.
type Statement struct {
	Source   string     // figure or section of the paper, or Adapter for a claim of our own; "": Source of the experiment
	Sentence string     // the claim in plain English
	Paper    string     // number that the paper reports, in words; "" if it reports none
	Number   float64    // that number in the unit of the comparison, where a better figure is worth a word; 0: none
	Compare  Comparison // figures and limit
	Because  string     // cause, as far as it is known, of a refutation; printed behind the figure
	Evidence Comparison // figures on which Because rests; unless all hold in the run, it is not printed; nil: none
	Exact    bool       // the length of the run does not matter: a quick run decides near the limit, and a refutation fails the tour
}

// AcceptsNumber reports whether Number, if there is one, is within one of the limits: a statement that the
// paper's own number would refute is not the paper's.
func (s *Statement) AcceptsNumber() bool {
	return s.Number == 0 || slices.ContainsFunc(s.Compare.comparedLimits(), func(l Limit) bool { return l.isWithin(s.Number) })
}

// A Word names an outcome.
type Word string

const (
	Reproduced Word = "reproduced"  // the paper's statement holds here
	Beyond     Word = "beyond"      // it holds, and the figure passes the paper's number by half or more
	Holds      Word = "holds"       // a claim of our own holds
	Refuted    Word = "refuted"     // a figure misses the limit
	NotReached Word = "not reached" // the run did not measure the figures of the statement
	NotJudged  Word = "not judged"  // the figures do not decide: noise, a missing opponent, a quick run near the limit
)

// PartJudged is a verdict on several statements, of which some pass and the others are not judged or not
// reached.
const PartJudged Word = "part judged"

// wordOrder has all outcomes in the order in which they are counted.
var wordOrder = []Word{Reproduced, Beyond, Holds, Refuted, NotReached, NotJudged}

// An Outcome is the result of a statement in one run.
type Outcome struct {
	Source   string  `json:"source"`
	Sentence string  `json:"sentence"`
	Paper    string  `json:"paper,omitempty"`
	Word     Word    `json:"outcome"`
	Ours     string  `json:"ours,omitempty"`  // deciding figure with its description and its limit
	Value    string  `json:"value,omitempty"` // the same without its description: "0.12 (at most 0.25)"
	Reason   string  `json:"why,omitempty"`   // behind Refuted, NotReached and NotJudged
	Checks   []Check `json:"checks,omitempty"`
	Exact    bool    `json:"exact,omitempty"`
}

// String returns the outcome with its figure and its reason.
func (o Outcome) String() string {
	switch {
	case o.Word == Refuted && o.Reason != "":
		return fmt.Sprintf("refuted because %s: %s", o.Ours, o.Reason)
	case o.Word == Refuted:
		return "refuted because " + o.Ours
	case o.Reason != "" && o.Ours != "":
		return fmt.Sprintf("%s (%s); measured: %s", o.Word, o.Reason, o.Ours)
	case o.Reason != "":
		return fmt.Sprintf("%s (%s)", o.Word, o.Reason)
	}
	return fmt.Sprintf("%s: %s", o.Word, o.Ours)
}

// IsPass reports whether the statement was judged and holds.
func (o Outcome) IsPass() bool { return o.Word == Reproduced || o.Word == Beyond || o.Word == Holds }

// Verdict returns the outcome of all statements together: Refuted if one is, Holds if all pass, PartJudged if
// only some do, and else NotJudged.
func Verdict(outcomes []Outcome) Word {
	passed := 0
	for _, o := range outcomes {
		switch {
		case o.Word == Refuted:
			return Refuted
		case o.IsPass():
			passed++
		}
	}
	switch passed {
	case 0:
		return NotJudged
	case len(outcomes):
		return Holds
	}
	return PartJudged
}

// Count returns the number of outcomes of each word: "2 reproduced, 1 refuted".
func Count(outcomes []Outcome) string {
	var parts []string
	for _, word := range wordOrder {
		n := 0
		for _, o := range outcomes {
			if o.Word == word {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	return strings.Join(parts, ", ")
}

// A Check is one comparison of a figure with the limit of a statement.
type Check struct {
	Description string  `json:"description"` // of the figure: "mpi-fast over mpi-tcp at 8 B"
	Value       string  `json:"value"`       // figure and limit: "0.12 (at most 0.25)"
	Figure      float64 `json:"figure"`
	Unit        string  `json:"-"` // of the figures of a ratio, unless they are times, else ""
	Limit       Limit   `json:"-"`
	Rows        []Row   `json:"-"` // on which the figure rests
	Holds       bool    `json:"holds"`
	Noise       string  `json:"noise,omitempty"` // reason for which the figure does not decide
}

// String returns the figure with its description, unit and limit: "rdma over tcp at 64 B 1.77 in MB/s
// (at most 1)". A ratio without a unit is one of times.
func (c Check) String() string {
	if c.Unit == "" {
		return c.Description + " " + c.Value
	}
	figure, limit, _ := strings.Cut(c.Value, " ")
	return fmt.Sprintf("%s %s in %s %s", c.Description, figure, c.Unit, limit)
}
