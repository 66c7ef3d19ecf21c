package impair

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/internal/spelling"
)

// A SyntaxError reports a wrong word in the text of a Spec.
type SyntaxError struct {
	Text   string // all of it
	Offset int    // of the word in Text, bytes
	Word   string // "" at the end of the text
	Reason string
}

// Error returns the reason and the place.
func (e *SyntaxError) Error() string {
	if e.Word == "" {
		return fmt.Sprintf("impair: end of %q: %s", e.Text, e.Reason)
	}
	return fmt.Sprintf("impair: %q at byte %d of %q: %s", e.Word, e.Offset, e.Text, e.Reason)
}

// Parse parses the text of a Spec; see the package documentation for the
// grammar. The empty text is the zero Spec. The error is a *SyntaxError, or
// that of Validate.
func Parse(text string) (Spec, error) {
	p := parser{text: text, words: tokenize(text)}
	var s Spec
	for !p.atEnd() {
		var err error
		switch {
		case p.peek() == ";":
			p.next()
			continue
		case p.atRule():
			err = p.parseRule(&s)
		default:
			err = p.parseNetem(&s)
		}
		if err != nil {
			return Spec{}, err
		}
	}
	if err := s.Validate(); err != nil {
		return Spec{}, err
	}
	return s, nil
}

// A token is a word of the text with its offset.
type token struct {
	offset int
	text   string
}

// tokenize splits the text at blanks; a semicolon is a token of its own.
func tokenize(text string) []token {
	var words []token
	start := -1
	end := func(i int) {
		if start >= 0 {
			words = append(words, token{start, text[start:i]})
			start = -1
		}
	}
	for i := range len(text) {
		switch text[i] {
		case ' ', '\t', '\n', '\r':
			end(i)
		case ';':
			end(i)
			words = append(words, token{i, ";"})
		default:
			if start < 0 {
				start = i
			}
		}
	}
	end(len(text))
	return words
}

// A parser iterates over the tokens.
type parser struct {
	text  string
	words []token
	pos   int
	seen  map[string]bool // options of netem so far
}

func (p *parser) atEnd() bool { return p.pos == len(p.words) }

// peek returns the current word, or "" at the end.
func (p *parser) peek() string {
	if p.atEnd() {
		return ""
	}
	return p.words[p.pos].text
}

// next returns the current word and advances.
func (p *parser) next() string {
	w := p.peek()
	if w != "" {
		p.pos++
	}
	return w
}

// accept skips the current word if it is the given one.
func (p *parser) accept(w string) bool {
	if p.peek() != w {
		return false
	}
	p.pos++
	return true
}

// atClauseEnd reports whether the current clause ends here.
func (p *parser) atClauseEnd() bool { return p.atEnd() || p.peek() == ";" }

// errorf returns an error about the current word.
func (p *parser) errorf(format string, args ...any) error {
	e := &SyntaxError{Text: p.text, Offset: len(p.text), Reason: fmt.Sprintf(format, args...)}
	if !p.atEnd() {
		e.Offset, e.Word = p.words[p.pos].offset, p.peek()
	}
	return e
}

// parseValue parses the current word into v.
func parseValue[T any](p *parser, v *T, parse func(string) (T, error)) error {
	got, err := parse(p.peek())
	if err != nil {
		return p.errorf("%v", err)
	}
	*v = got
	p.pos++
	return nil
}

// parseValues parses consecutive quantities into the given variables, at least
// one.
func parseValues[T any](p *parser, parse func(string) (T, error), places ...*T) error {
	for i, v := range places {
		if i > 0 && !isQuantity(p.peek()) {
			return nil
		}
		if err := parseValue(p, v, parse); err != nil {
			return err
		}
	}
	return nil
}

// isQuantity reports whether a word is a number, with or without a unit.
func isQuantity(w string) bool { return w != "" && (w[0] >= '0' && w[0] <= '9' || w[0] == '.') }

func parseCount(w string) (int, error) {
	n, err := strconv.ParseUint(w, 10, 31)
	if err != nil || n == 0 {
		return 0, errors.New("want a number from 1")
	}
	return int(n), nil
}

func parseSeed(w string) (uint64, error) {
	n, err := strconv.ParseUint(w, 0, 64)
	if err != nil {
		return 0, errors.New("want a number of at most 64 bits")
	}
	return n, nil
}

// keywords begin the options and the rules.
var keywords = []string{"loss", "ecn", "delay", "reorder", "duplicate", "corrupt", "rate", "limit", "seed", "drop", "mark"}

// parseNetem parses one option of netem with its arguments.
func (p *parser) parseNetem(s *Spec) error {
	w := p.peek()
	if p.seen[w] {
		return p.errorf("given twice")
	}
	if p.seen == nil {
		p.seen = make(map[string]bool)
	}
	p.seen[w] = true
	switch w {
	case "loss":
		p.next()
		return p.parseLoss(s)
	case "delay":
		p.next()
		return p.parseDelay(&s.Delay)
	case "reorder":
		p.next()
		return p.parseReorder(&s.Reorder)
	case "duplicate":
		p.next()
		return p.parseChance(&s.Duplicate)
	case "corrupt":
		p.next()
		return p.parseChance(&s.Corrupt)
	case "rate":
		p.next()
		return parseValue(p, &s.Rate, parseRate)
	case "limit":
		p.next()
		return parseValue(p, &s.Limit, parseCount)
	case "seed":
		p.next()
		return parseValue(p, &s.Seed, parseSeed)
	case "ecn":
		p.next()
		s.ECN = true
		return nil
	case "drop", "mark":
		return p.errorf("a rule must be a clause of its own; put ';' before it")
	}
	return p.errorf("unknown word%s; want loss, ecn, delay, reorder, duplicate, corrupt, rate, limit or seed, or a rule that begins with drop, duplicate, corrupt, delay or mark", spelling.Hint(p.peek(), keywords...))
}

func (p *parser) parseChance(c *Chance) error {
	return parseValues(p, parsePercent, &c.P, &c.Correlation)
}

func (p *parser) parseLoss(s *Spec) error {
	switch {
	case p.accept("gemodel"):
		l := GEModel{R: -1, Bad: 100}
		if err := parseValues(p, parsePercent, &l.P, &l.R, &l.Bad, &l.Good); err != nil {
			return err
		}
		if l.R < 0 {
			l.R = 100 - l.P
		}
		s.Loss = l
	case p.accept("state"):
		l := FourState{P31: -1, P23: 100}
		if err := parseValues(p, parsePercent, &l.P13, &l.P31, &l.P32, &l.P23, &l.P14); err != nil {
			return err
		}
		if l.P31 < 0 {
			l.P31 = 100 - l.P13
		}
		s.Loss = l
	default:
		p.accept("random")
		var c Chance
		if err := p.parseChance(&c); err != nil {
			return err
		}
		s.Loss = Random(c)
	}
	return nil
}

func (p *parser) parseDelay(d *Delay) error {
	if err := parseValues(p, parseTime, &d.Mean, &d.Jitter); err != nil {
		return err
	}
	if isQuantity(p.peek()) {
		if err := parseValue(p, &d.Correlation, parsePercent); err != nil {
			return err
		}
	}
	if p.accept("distribution") {
		return parseValue(p, &d.Distribution, parseDistribution)
	}
	return nil
}

func parseDistribution(w string) (Distribution, error) {
	for i, name := range distributionNames {
		if name == w {
			return Distribution(i), nil
		}
	}
	return 0, fmt.Errorf("want one of %s%s", strings.Join(distributionNames[:], ", "), spelling.Hint(w, distributionNames[:]...))
}

func (p *parser) parseReorder(r *Reorder) error {
	if err := p.parseChance(&r.Chance); err != nil {
		return err
	}
	if p.accept("gap") {
		return parseValue(p, &r.Gap, parseCount)
	}
	return nil
}
