package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	// QuickBand is the fraction of a limit within which quick runs do not decide.
	QuickBand = 0.2

	// beyondBy is the factor from the paper's number on from which a figure is Beyond.
	beyondBy = 1.5
)

// Judge returns the outcomes of the statements of e by the rows of a run with the given options.
func (e *Experiment) Judge(rows []Row, quick bool, set Settings) []Outcome {
	other := e.otherClaim(quick, set)
	outcomes := make([]Outcome, len(e.Claims))
	for i := range e.Claims {
		outcomes[i] = e.Claims[i].judgeRows(figures(rows), quick)
		o := &outcomes[i]
		o.Source = e.SourceOf(i)
		if o.Word == Reproduced && o.Source == Adapter {
			o.Word = Holds
		}
		if reason := e.leftOut(&e.Claims[i], quick, set); reason != "" && o.IsPass() {
			o.Word, o.Reason = NotJudged, reason
		}
		if other != "" {
			o.Word, o.Reason = NotJudged, other
		}
	}
	return outcomes
}

// SourceOf returns the source of statement i of e.
func (e *Experiment) SourceOf(i int) string {
	if s := e.Claims[i].Source; s != "" {
		return s
	}
	return e.Source
}

// judgeRows returns the outcome except for its source. A refutation needs one figure that misses
// the limit; a pass needs all figures of the statement, without noise.
func (s *Statement) judgeRows(f figures, quick bool) Outcome {
	j := judgement{figures: f}
	s.Compare.addChecks(&j)
	o := Outcome{Sentence: s.Sentence, Paper: s.Paper, Checks: j.checks, Exact: s.Exact}
	worst := decisiveCheck(j.checks)
	if shown := worst; shown != nil || len(j.checks) > 0 {
		if shown == nil {
			shown = &j.checks[0] // noise
		}
		o.Ours, o.Value = shown.String(), shown.Value
	}
	near := worst != nil && quick && !s.Exact && worst.Limit.isNear(worst.Figure, QuickBand)
	noise := firstNoise(j.checks)
	switch {
	case near:
		o.Word, o.Reason = NotJudged, "a quick run does not decide near the limit"
	case worst != nil && !worst.Holds:
		o.Word, o.Reason = Refuted, s.causeIn(f)
	case noise != "":
		o.Word, o.Reason = NotJudged, "noise: "+noise
	case len(j.absent) > 0:
		o.Word, o.Reason = NotJudged, joinReasons(j.absent)
	case len(j.missing) > 0 || worst == nil:
		o.Word, o.Reason = NotReached, joinReasons(j.missing)
	case s.Number > 0 && worst.Limit.isBeyond(worst.Figure, s.Number):
		o.Word = Beyond
	default:
		o.Word = Reproduced
	}
	return o
}

// unknownCause stands for the cause of a refutation that is not known.
const unknownCause = "the cause is not measured"

// causeIn returns the cause of a refutation, or unknownCause if the run does not have the figures on which
// it rests.
func (s *Statement) causeIn(f figures) string {
	switch {
	case s.Because == "":
		return unknownCause
	case s.Evidence == nil:
		return s.Because
	}
	j := judgement{figures: f}
	s.Evidence.addChecks(&j)
	if len(j.checks) == 0 || len(j.absent)+len(j.missing) > 0 || slices.ContainsFunc(j.checks, func(c Check) bool { return !c.Holds || c.Noise != "" }) {
		return unknownCause
	}
	return s.Because
}

// joinReasons joins the first reasons, and counts the others.
func joinReasons(reasons []string) string {
	const shown = 3
	if more := len(reasons) - shown; more > 1 {
		return fmt.Sprintf("%s; and %d more", strings.Join(reasons[:shown], "; "), more)
	}
	return strings.Join(reasons, "; ")
}

// decisiveCheck returns the check without noise that misses its limit by the largest fraction, or, if
// none misses, the one nearest to its limit. It returns nil if all checks have noise.
func decisiveCheck(checks []Check) *Check {
	var worst *Check
	most := math.Inf(-1)
	for i, c := range checks {
		if miss := c.Limit.missBy(c.Figure); c.Noise == "" && (worst == nil || miss > most) {
			worst, most = &checks[i], miss
		}
	}
	return worst
}

func firstNoise(checks []Check) string {
	for _, c := range checks {
		if c.Noise != "" {
			return c.Noise
		}
	}
	return ""
}

// otherClaim returns a reason if a parameter of the run makes it one about something else than
// the claim, else "".
func (e *Experiment) otherClaim(quick bool, set Settings) string {
	for _, p := range e.Params {
		value, ok := set[p.Name]
		if !ok && quick && p.Quick != "" {
			value, ok = p.Quick, true
		}
		if ok && p.OfClaim && value != p.Default {
			return fmt.Sprintf("%s=%s, and the claim is about %s", p.Name, value, p.Default)
		}
	}
	return ""
}

// leftOut returns a reason if the run leaves out points of the statement that a run with the defaults
// measures, else "". Such a run can refute the statement, but not confirm it. Values of a list are taken
// for points of the statement by their number alone: a parameter does not tell its axis.
func (e *Experiment) leftOut(s *Statement, quick bool, set Settings) string {
	for _, p := range e.Params {
		value, ok := set[p.Name]
		if !ok && quick && p.Quick != "" {
			value, ok = p.Quick, true
		}
		if !ok || value == p.Default {
			continue
		}
		measured := p.parseNumbers(value)
		for _, v := range p.parseNumbers(p.Default) {
			if !slices.Contains(measured, v) && slices.ContainsFunc(s.Compare.comparedPoints(), func(at Points) bool { return v >= at.from && v <= at.to }) {
				return fmt.Sprintf("a run with %s=%s leaves out points of the sentence", p.Name, value)
			}
		}
	}
	return ""
}
