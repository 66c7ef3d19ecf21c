package impair

import (
	"errors"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/wire"
)

// atRule reports whether a rule begins here. Three verbs are options of netem
// as well; the clause is a rule if it has a word that only rules have.
func (p *parser) atRule() bool {
	if p.pos > 0 && p.words[p.pos-1].text != ";" {
		return false
	}
	switch p.peek() {
	case "drop", "mark":
		return true
	case "duplicate", "corrupt", "delay":
		for _, w := range p.words[p.pos+1:] {
			if w.text == ";" {
				return false
			}
			if isRuleWord(w.text) {
				return true
			}
		}
	}
	return false
}

// isRuleWord reports whether a word occurs in rules only.
func isRuleWord(w string) bool {
	switch w {
	case "in", "out", "of", "with", "icrc", "every", "first", "always", "qp", "psn":
		return true
	}
	_, err := parseOrdinal(w)
	return err == nil || w[0] >= 'A' && w[0] <= 'Z'
}

// parseRule parses a clause that is a rule.
func (p *parser) parseRule(s *Spec) error {
	var r Rule
	for _, part := range []func(*Rule) error{p.parseAction, p.parseDirection, p.parseWhen, p.parseDirection, p.parsePackets, p.parseFlow} {
		if err := part(&r); err != nil {
			return err
		}
	}
	if !p.atClauseEnd() {
		return p.errorf("not valid here; a rule is: action, in or out, when, packets, qp, psn")
	}
	s.Rules = append(s.Rules, r)
	return nil
}

func (p *parser) parseAction(r *Rule) error {
	switch p.next() {
	case "drop":
		r.Action.Kind = Drop
	case "duplicate":
		r.Action.Kind = Duplicate
	case "delay":
		r.Action.Kind = HoldBack
		if err := parseValue(p, &r.Action.Delay, parseTime); err != nil {
			return err
		}
		if r.Action.Delay == 0 {
			p.pos--
			return p.errorf("want a time longer than 0")
		}
	case "corrupt":
		r.Action.Kind = Corrupt
		if p.accept("icrc") {
			r.Action.Kind = CorruptICRC
			if p.peek() == "of" && !p.flowFollows() {
				p.next()
			}
		}
	case "mark":
		r.Action.Kind = MarkECN
		if !p.accept("ecn") {
			return p.errorf("want ecn after mark")
		}
	}
	return nil
}

// flowFollows reports whether "of" here is that of "of qp 7".
func (p *parser) flowFollows() bool {
	return p.pos+1 < len(p.words) && p.words[p.pos+1].text == "qp"
}

func (p *parser) parseDirection(r *Rule) error {
	switch {
	case p.accept("in"):
		r.Match.Direction = In
	case p.accept("out"):
		r.Match.Direction = Out
	}
	return nil
}

func (p *parser) parseWhen(r *Rule) error {
	w := p.peek()
	switch {
	case p.accept("always"):
	case w == "first":
		p.next()
		if isQuantity(p.peek()) {
			return parseValue(p, &r.When.First, parseCount)
		}
		r.When.Nth = 1
	case w == "every":
		p.next()
		return parseValue(p, &r.When.Every, parseOrdinal)
	case strings.HasSuffix(w, "%"):
		if err := parseValue(p, &r.When.P, parsePercent); err != nil {
			return err
		}
		if r.When.P == 0 {
			p.pos--
			return p.errorf("the rule never applies; omit it")
		}
	case isQuantity(w):
		return parseValue(p, &r.When.Nth, parseOrdinal)
	default:
		if p.hasPSN() {
			r.When.Nth = 1 // a PSN alone selects the packet, not its retransmissions
		}
	}
	return nil
}

// hasPSN reports whether the rest of the clause names a PSN.
func (p *parser) hasPSN() bool {
	for _, w := range p.words[p.pos:] {
		switch w.text {
		case "psn":
			return true
		case ";":
			return false
		}
	}
	return false
}

func (p *parser) parsePackets(r *Rule) error {
	w := p.peek()
	if p.atClauseEnd() || w == "of" || w == "with" || w == "qp" || w == "psn" {
		return nil
	}
	if _, err := lookupSelector(w); err != nil {
		return p.errorf("%v", err)
	}
	r.Match.Packets = p.next()
	return nil
}

func (p *parser) parseFlow(r *Rule) error {
	if p.peek() == "of" || p.peek() == "qp" {
		p.accept("of")
		if !p.accept("qp") {
			return p.errorf("want qp after of")
		}
		if err := parseValue(p, &r.Match.QPN, parseQPN); err != nil {
			return err
		}
	}
	if p.peek() == "with" || p.peek() == "psn" {
		p.accept("with")
		if !p.accept("psn") {
			return p.errorf("want psn after with")
		}
		return parseValue(p, &r.Match.PSN, parsePSN)
	}
	return nil
}

func parseOrdinal(w string) (int, error) {
	if len(w) > 2 {
		if n, err := parseCount(w[:len(w)-2]); err == nil && w == ordinal(n) {
			return n, nil
		}
	}
	return 0, errors.New("want an ordinal such as 1st, 2nd or 3rd")
}

func parseQPN(w string) (uint32, error) {
	n, err := strconv.ParseUint(w, 0, 24)
	if err != nil || n == 0 {
		return 0, errors.New("want a QPN: 1 to 16777215, or hexadecimal with 0x")
	}
	return uint32(n), nil
}

func parsePSN(w string) (PSN, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(w, "+"), 0, 24)
	if err != nil {
		return PSN{}, errors.New("want a PSN: 0 to 16777215, or hexadecimal with 0x; with + relative to the first one seen")
	}
	if w[0] == '+' {
		return RelativePSN(int(n)), nil
	}
	return AbsolutePSN(wire.PSN(n)), nil
}
