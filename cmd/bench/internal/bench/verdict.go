package bench

import "math"

// A Verdict says whether the claim holds here, and why.
type Verdict struct {
	Holds  bool
	Reason string  // the figures that decide it, in a sentence
	Checks []Check // the comparisons it is made of, where the experiment tells them
}

// A Check is one comparison of a figure with what the claim wants.
type Check struct {
	Description string  `json:"what"`             // figure and limit in words
	Figure      float64 `json:"figure,omitempty"` // as it was compared
	Limit       float64 `json:"limit,omitempty"`  // 0: something else than a limit decided
	Holds       bool    `json:"holds"`
}

// NearLimit reports whether the figure is within the part band of its limit, as 0.2 is within
// 20 %. Without a limit it is not.
func (c Check) NearLimit(band float64) bool {
	return c.Limit != 0 && math.Abs(c.Figure/c.Limit-1) <= band
}

// A State says what a result is worth to the claim.
type State string

const (
	Agrees  State = "agrees"   // the claim holds
	Differs State = "differs"  // it does not
	NeedRun State = "need run" // a quick run cannot tell: `bench run` can
	Failed  State = "failed"   // no verdict
)

// QuickBand is the part of a limit within which quick runs do not decide.
const QuickBand = 0.2

// QuickState returns what a quick run says of the claim: NeedRun where what decides is
// within QuickBand of its limit, or no check tells by how much the claim is missed.
func (res *Result) QuickState() State {
	if res.Err != nil {
		return Failed
	}
	state := Agrees
	if !res.Verdict.Holds {
		state = NeedRun
	}
	for _, c := range res.Verdict.Checks {
		switch near := c.NearLimit(QuickBand); {
		case !c.Holds && !near && c.Limit != 0:
			return Differs
		case near:
			state = NeedRun
		}
	}
	return state
}

// Decisive returns the check furthest on the wrong side of its limit, or if all hold the
// one nearest to it; nil if no check has a limit.
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
