package impair

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/wire"
)

// A Rule acts on packets selected by their RoCE headers. As text: "drop 3rd READ_RESPONSE of qp 7"; in Go:
//
//	impair.Rule{
//		Action: impair.Action{Kind: impair.Drop},
//		Match:  impair.Match{Packets: "READ_RESPONSE", QPN: 7},
//		When:   impair.When{Nth: 3},
//	}
type Rule struct {
	Action Action
	Match  Match
	When   When
}

// An ActionKind is the kind of an Action.
type ActionKind uint8

// Actions.
const (
	Drop        ActionKind = iota // the packet is lost
	Duplicate                     // the packet is duplicated
	HoldBack                      // the packet is delayed by Action.Delay
	Corrupt                       // one random bit of the packet is inverted
	CorruptICRC                   // the lowest bit of its ICRC is inverted
	MarkECN                       // CE is set in the IP header, and FECN in the BTH for links that do not show the former
	numActions
)

// An Action is the effect of a rule on the packets it selects.
type Action struct {
	Kind  ActionKind
	Delay time.Duration // of HoldBack, longer than 0
}

// String returns the action as text, such as "delay 5ms".
func (a Action) String() string {
	switch a.Kind {
	case Drop:
		return "drop"
	case Duplicate:
		return "duplicate"
	case HoldBack:
		return "delay " + formatTime(a.Delay)
	case Corrupt:
		return "corrupt"
	case CorruptICRC:
		return "corrupt icrc"
	case MarkECN:
		return "mark ecn"
	}
	return "action " + strconv.Itoa(int(a.Kind))
}

// A Direction is the direction of a packet, seen from the link.
type Direction uint8

// Directions.
const (
	Out Direction = iota
	In
)

// A Match selects packets; its zero value matches every outgoing packet.
type Match struct {
	Direction Direction

	// Packets is the name of an opcode, or parts of one; "" matches any. See
	// the package documentation.
	Packets string

	QPN uint32 // destination QPN in the BTH; 0 for any
	PSN PSN
}

// PSN describes packet sequence numbers; its zero value matches all of them.
type PSN struct {
	kind  psnKind
	value wire.PSN
}

type psnKind uint8

const (
	anyPSN psnKind = iota
	absolutePSN
	relativePSN
)

// AbsolutePSN matches the packets with this PSN in the BTH.
func AbsolutePSN(psn wire.PSN) PSN { return PSN{absolutePSN, psn & wire.PSNMask} }

// RelativePSN matches the packets n behind the first one that the link has seen
// since the Spec was set, among those of the same direction, peer, destination
// QPN and kind (requests or responses).
func RelativePSN(n int) PSN { return PSN{relativePSN, wire.PSN(0).Add(n)} }

// String returns the PSN as text, "psn 7" or "psn +7", or "" for any.
func (p PSN) String() string {
	switch p.kind {
	case absolutePSN:
		return fmt.Sprintf("psn %d", p.value)
	case relativePSN:
		return fmt.Sprintf("psn +%d", p.value)
	}
	return ""
}

// A When selects among the matching packets, which every rule counts from 1. At
// most one field is set. The zero value selects all of them.
type When struct {
	Nth   int     // only this one
	Every int     // each whose number is a multiple
	First int     // the first so many
	P     Percent // each with this probability
}

// String returns the choice as text, such as "3rd" or "every 2nd", or "" for
// all.
func (w When) String() string {
	switch {
	case w.Nth != 0:
		return ordinal(w.Nth)
	case w.Every != 0:
		return "every " + ordinal(w.Every)
	case w.First != 0:
		return "first " + strconv.Itoa(w.First)
	case w.P != 0:
		return w.P.String()
	}
	return ""
}

// ordinal formats 1st, 2nd, 3rd, 4th, 11th, 21st.
func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

// String returns the text that Parse parses into this rule.
func (r Rule) String() string {
	var match []string
	if r.Match.Packets != "" {
		match = append(match, r.Match.Packets)
	}
	if r.Match.QPN != 0 {
		match = append(match, fmt.Sprintf("of qp %d", r.Match.QPN))
	}
	if r.Match.PSN != (PSN{}) {
		match = append(match, "with "+r.Match.PSN.String())
	}

	words := []string{r.Action.String()}
	switch {
	case r.Match.Direction == In:
		words = append(words, "in")
	case len(match) == 0 && r.Action.isNetem() && (r.When.P != 0 || r.When == When{}):
		words = append(words, "out") // otherwise it would be an option of netem
	}
	if w := r.When.String(); w != "" {
		words = append(words, w)
	} else if r.Match.PSN != (PSN{}) {
		words = append(words, "always") // a PSN alone would mean once
	}
	return strings.Join(append(words, match...), " ")
}

// isNetem reports whether the text of the action could also be an option of
// netem.
func (a Action) isNetem() bool {
	return a.Kind == Duplicate || a.Kind == Corrupt || a.Kind == HoldBack
}

func (r *Rule) validate() error {
	w := r.When
	set := 0
	for _, is := range []bool{w.Nth != 0, w.Every != 0, w.First != 0, w.P != 0} {
		if is {
			set++
		}
	}
	switch {
	case r.Action.Kind >= numActions:
		return fmt.Errorf("no such action")
	case r.Action.Kind == HoldBack && (r.Action.Delay <= 0 || r.Action.Delay > maxTime):
		return fmt.Errorf("delay %v; want more than 0, at most %v", r.Action.Delay, maxTime)
	case r.Action.Kind != HoldBack && r.Action.Delay != 0:
		return fmt.Errorf("only HoldBack has a Delay")
	case r.Match.Direction > In:
		return fmt.Errorf("no such direction")
	case r.Match.QPN > wire.QPNMask:
		return fmt.Errorf("qp %d; want 1 to %d", r.Match.QPN, wire.QPNMask)
	case set > 1:
		return fmt.Errorf("more than one of Nth, Every, First and P")
	case w.Nth < 0 || w.Every < 0 || w.First < 0 || !w.P.valid():
		return fmt.Errorf("When %+v; want counts from 1, a probability up to 100%%", w)
	}
	_, err := lookupSelector(r.Match.Packets)
	return err
}
