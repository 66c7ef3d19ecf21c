package bench

import "math"

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
