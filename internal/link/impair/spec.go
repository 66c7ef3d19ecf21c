package impair

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DefaultLimit is the default of Spec.Limit: netem's default.
const DefaultLimit = 1000

// A Spec describes the faults of a link. Parse parses one, String formats it. The
// zero Spec does nothing.
//
// All fields but Rules follow tc-netem(8), and apply to outgoing packets.
type Spec struct {
	Loss      Loss    // Random, GEModel or FourState; nil for none
	ECN       bool    // ECN-capable packets that Loss selects are marked Congestion Experienced instead
	Delay     Delay   // additional delay
	Reorder   Reorder // packets that skip the delay; needs one
	Duplicate Chance  // packets that leave twice
	Corrupt   Chance  // packets in which one random bit is inverted, after the ICRC has been computed
	Rate      int64   // bits a second, IP headers counted; 0 for no limit
	Limit     int     // maximum number of delayed packets, others are dropped; 0 for DefaultLimit
	Seed      uint64  // of the random streams, together with the link's address

	Rules []Rule // every rule sees every packet, before the rest is applied
}

// Chance is a probability. With a correlation, each draw depends on the one
// before: next = draw * (1 - Correlation) + last * Correlation. As in netem
// this makes draws less extreme, so a small P happens less often.
type Chance struct {
	P           Percent
	Correlation Percent
}

// String returns the percentages, the correlation only if there is one.
func (c Chance) String() string {
	if c.Correlation != 0 {
		return c.P.String() + " " + c.Correlation.String()
	}
	return c.P.String()
}

// A Loss is a model of packet loss: Random, GEModel or FourState.
type Loss interface {
	// String returns the text of the model behind "loss".
	String() string
	percentages() []Percent
	newProcess() lossProcess
}

// Random loses each packet with the same probability.
type Random Chance

// String returns the percentages.
func (l Random) String() string { return Chance(l).String() }

// GEModel is the Gilbert-Elliott model: a good and a bad state, each with its
// own loss; the state may change before every packet. Loss comes in bursts of
// 1/R packets on average when Bad is 100%.
type GEModel struct {
	P    Percent // from good to bad
	R    Percent // from bad to good
	Bad  Percent // loss in the bad state, "1-h"
	Good Percent // loss in the good state, "1-k"
}

// String returns "gemodel" and the four parameters.
func (l GEModel) String() string {
	return fmt.Sprintf("gemodel %v %v %v %v", l.P, l.R, l.Bad, l.Good)
}

// FourState is netem's Markov model: good reception in a gap (1), good reception
// in a burst (2), loss in a burst (3), lone loss in a gap (4), with the
// probabilities to change from state to state.
type FourState struct {
	P13, P31, P32, P23, P14 Percent
}

// String returns "state" and the five parameters.
func (l FourState) String() string {
	return fmt.Sprintf("state %v %v %v %v %v", l.P13, l.P31, l.P32, l.P23, l.P14)
}

// A Distribution is the distribution of delays around their mean.
type Distribution uint8

// Distributions. With all but Uniform, Jitter is the standard deviation.
const (
	Uniform      Distribution = iota // Mean-Jitter to Mean+Jitter
	Normal                           // Gauss, cut off at 4 Jitter
	Pareto                           // mostly a little early, sometimes up to 4 Jitter late
	ParetoNormal                     // a quarter Normal, three quarters Pareto
	numDistributions
)

var distributionNames = [numDistributions]string{"uniform", "normal", "pareto", "paretonormal"}

// String returns netem's name of the distribution.
func (d Distribution) String() string {
	if d < numDistributions {
		return distributionNames[d]
	}
	return "distribution " + strconv.Itoa(int(d))
}

// A Delay delays packets. Jitter may reorder them.
type Delay struct {
	Mean         time.Duration
	Jitter       time.Duration
	Correlation  Percent // of one delay with the one before
	Distribution Distribution
}

// A Reorder sends packets without the delay, ahead of earlier ones.
type Reorder struct {
	Chance
	Gap int // only every Gap-th packet has the chance; 0 or 1 for each
}

// Idle reports whether the Spec does nothing.
func (s *Spec) Idle() bool { return !s.usesNetem() && len(s.Rules) == 0 }

// usesNetem reports whether any fault but rules is set.
func (s *Spec) usesNetem() bool {
	return s.Loss != nil || s.Delay != (Delay{}) || s.Duplicate.P != 0 || s.Corrupt.P != 0 || s.Rate != 0
}

// Validate returns an error if the Spec is inconsistent or out of range. A Spec
// from Parse is valid.
func (s *Spec) Validate() error {
	percentages := []Percent{
		s.Delay.Correlation, s.Reorder.P, s.Reorder.Correlation,
		s.Duplicate.P, s.Duplicate.Correlation, s.Corrupt.P, s.Corrupt.Correlation,
	}
	if s.Loss != nil {
		percentages = append(percentages, s.Loss.percentages()...)
	}
	for _, p := range percentages {
		if !p.valid() {
			return fmt.Errorf("impair: probability %v: want 0%% to 100%%", p)
		}
	}
	d := s.Delay
	switch {
	case d.Mean < 0 || d.Jitter < 0 || d.Mean > maxTime || d.Jitter > maxTime:
		return fmt.Errorf("impair: delay %v with jitter %v; want 0 to %v", d.Mean, d.Jitter, maxTime)
	case d.Distribution >= numDistributions:
		return fmt.Errorf("impair: %v does not exist", d.Distribution)
	case d.Jitter == 0 && (d.Correlation != 0 || d.Distribution != Uniform):
		return fmt.Errorf("impair: a delay without jitter has neither correlation nor distribution")
	case s.Reorder.P != 0 && d.Mean == 0:
		return fmt.Errorf("impair: reorder needs a delay: it lets packets skip it")
	case s.Reorder.P == 0 && s.Reorder != Reorder{} || s.Reorder.Gap < 0:
		return fmt.Errorf("impair: reorder with gap %d needs a probability, and a gap that is not negative", s.Reorder.Gap)
	case s.ECN && s.Loss == nil:
		return fmt.Errorf("impair: ecn needs a loss: it marks the packets that would be lost")
	case s.Rate < 0 || s.Rate > maxRate:
		return fmt.Errorf("impair: rate %d; want bits per second up to 10tbit", s.Rate)
	case s.Limit < 0:
		return fmt.Errorf("impair: limit %d; want packets", s.Limit)
	}
	for i := range s.Rules {
		if err := s.Rules[i].validate(); err != nil {
			return fmt.Errorf("impair: rule %q: %w", s.Rules[i], err)
		}
	}
	return nil
}

// String returns the text that Parse parses into this Spec, in the order of the
// fields.
func (s Spec) String() string {
	var words []string
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if s.Loss != nil {
		add("loss %v", s.Loss)
	}
	if s.ECN {
		add("ecn")
	}
	if d := s.Delay; d != (Delay{}) {
		add("delay %s", formatTime(d.Mean))
		if d.Jitter != 0 {
			add("%s", formatTime(d.Jitter))
		}
		if d.Correlation != 0 {
			add("%v", d.Correlation)
		}
		if d.Distribution != Uniform {
			add("distribution %v", d.Distribution)
		}
	}
	if s.Reorder != (Reorder{}) {
		add("reorder %v", s.Reorder.Chance)
		if s.Reorder.Gap != 0 {
			add("gap %d", s.Reorder.Gap)
		}
	}
	if s.Duplicate != (Chance{}) {
		add("duplicate %v", s.Duplicate)
	}
	if s.Corrupt != (Chance{}) {
		add("corrupt %v", s.Corrupt)
	}
	if s.Rate != 0 {
		add("rate %s", formatRate(s.Rate))
	}
	if s.Limit != 0 {
		add("limit %d", s.Limit)
	}
	if s.Seed != 0 {
		add("seed %d", s.Seed)
	}
	var clauses []string
	if len(words) > 0 {
		clauses = append(clauses, strings.Join(words, " "))
	}
	for _, r := range s.Rules {
		clauses = append(clauses, r.String())
	}
	return strings.Join(clauses, "; ")
}
