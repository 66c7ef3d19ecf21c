package bench

import (
	"regexp"
	"slices"
	"strings"
)

// A Paper is a publication whose figures experiments reproduce.
type Paper struct {
	Short   string // prefix of its sources: "RCUD"
	Title   string
	Authors string
	Venue   string            // conference or journal, and year
	Results map[string]string // reported results, by Source
}

// Papers lists the papers that experiments reproduce.
var Papers = []*Paper{
	{
		Short:   "RCUD",
		Title:   "On using Connection-Oriented vs. Connection-Less Transport for Performance and Scalability of Collective and One-sided Operations",
		Authors: "Mamidala, Narravula, Vishnu, Santhanaraman, Panda", Venue: "PPoPP 2007",
		Results: map[string]string{
			"RCUD fig. 6a": "linear in the number of RC connections",
			"RCUD fig. 6b": "increases from 32 queue pairs on",
			"RCUD fig. 6c": "copy is faster",
			"RCUD fig. 7a": "38 % better at 32 processes",
			"RCUD fig. 7b": "more RC connections: faster, more memory",
			"RCUD fig. 8":  "UD equal up to one MTU, slower above",
			"RCUD fig. 9":  "UD 36 to 38 % faster than Bruck for small messages, up to 2 times direct RC",
			"RCUD fig. 10": "over 3 times RC for a read of one MTU",
			"RCUD fig. 11": "writes cost less than reads",
		},
	},
	{
		Short: "IWARP", Title: "High Performance MPI over iWARP: Early Experiences",
		Authors: "Narravula, Mamidala, Vishnu, Santhanaraman, Panda", Venue: "ICPP 2007",
		Results: map[string]string{
			"IWARP fig. 4a": "75 % below MPI over TCP, within 6 % of a bare RDMA write",
			"IWARP fig. 4b": "37 % above MPI over TCP",
			"IWARP fig. 5":  "put latency 74 % below MPI over TCP",
			"IWARP fig. 6":  "get bandwidth 3.6 times that of MPI over TCP",
			"IWARP fig. 7a": "80 % below MPI over TCP at 32 processes",
			"IWARP fig. 7b": "84 % below MPI over TCP at 32 processes",
			"IWARP fig. 8a": "80 % below MPI over TCP at 32 processes",
			"IWARP fig. 8b": "IS 15 % and CG 4 % faster than MPI over TCP on 16 processes",
		},
	},
	{
		Short: "SDP", Title: "Advanced Flow-control Mechanisms for the Sockets Direct Protocol over InfiniBand",
		Authors: "Balaji, Bhagvat, Panda, Thakur, Gropp", Venue: "Argonne preprint P1422-0507, 2007",
		Results: map[string]string{
			"SDP fig. 6a":  "equal for the three flow control modes",
			"SDP fig. 6b":  "RDMA-based and NIC-assisted almost 10 times credit-based from 256 B to 4 KB",
			"SDP fig. 8":   "RDMA-based becomes slower with computation, NIC-assisted does not",
			"SDP fig. 9":   "credit-based fills its buffers at 8 KB only, the others from 512 B on",
			"SDP fig. 10a": "10 % faster than credit-based",
			"SDP fig. 10b": "20 % faster than credit-based",
			"SDP sec. 2.2": "zero-copy is faster above 32 KB",
		},
	},
	{
		Short: "ACP", Title: "Evaluation of On-Demand Message-Passing Module over RDMA Network",
		Authors: "Nanri, Soga",
		Results: map[string]string{
			"ACP tables I, II, III": "176 B per process and 2 MB; sides of a channel 168 + 16 n + n s and 160 + n s bytes",
			"ACP fig. 6":            "time of a copy in both directions over its size",
			"ACP fig. 7":            "full speed from slots of 64 KB",
			"ACP fig. 8":            "4 times the network's latency",
			"ACP figs. 9, 10":       "slots have no effect",
			"ACP figs. 11, 12":      "time grows with the size of the buffers",
		},
	},
}

// String returns authors, title and venue on one line.
func (p *Paper) String() string {
	s := p.Authors + ": " + p.Title
	if p.Venue != "" {
		s += ", " + p.Venue
	}
	return s
}

// Paper returns the publication that e reproduces, or nil.
func (e *Experiment) Paper() *Paper {
	short, _, _ := strings.Cut(e.Source, " ")
	i := slices.IndexFunc(Papers, func(p *Paper) bool { return p.Short == short })
	if i < 0 {
		return nil
	}
	return Papers[i]
}

// Spellings of figures and tables: "Figure 6a", "figs. 6a", "tables I".
var (
	figureWords = regexp.MustCompile(`\b(?:figures?|figs?\.?)\s*`)
	tableWords  = regexp.MustCompile(`\btables?\b`)
)

// normalizeSource returns s in the spelling in which sources are compared.
func normalizeSource(s string) string {
	s = figureWords.ReplaceAllString(strings.ToLower(s), "fig. ")
	return strings.Join(strings.Fields(tableWords.ReplaceAllString(s, "table")), " ")
}

// sourceForms returns the normalized source of each figure of e: "acp fig. 11" and "acp fig.
// 12" for "ACP figs. 11, 12".
func (e *Experiment) sourceForms() []string {
	first, others, _ := strings.Cut(normalizeSource(e.Source), ", ")
	forms := []string{first}
	if i := strings.LastIndexByte(first, ' '); i >= 0 && others != "" {
		for other := range strings.SplitSeq(others, ", ") {
			forms = append(forms, first[:i+1]+other)
		}
	}
	return forms
}

// fromSource reports whether e reproduces the source named by pattern: a paper by its short
// name or by words of its title, a figure by its number, or both. "fig. 6" includes 6a and 6b,
// but "fig. 1" does not include 10.
func (e *Experiment) fromSource(pattern string) bool {
	pattern = normalizeSource(pattern)
	if pattern == "" {
		return false
	}
	for _, source := range e.sourceForms() {
		for at := 0; ; {
			i := strings.Index(source[at:], pattern)
			if i < 0 {
				break
			}
			at += i
			if wholeWords(source, at, at+len(pattern)) {
				return true
			}
			at++
		}
	}
	p := e.Paper()
	return p != nil && len(pattern) > 3 && strings.Contains(strings.ToLower(p.Title), pattern)
}

// wholeWords reports whether s[from:to] begins at the start of a word and does not end inside a
// word or a number.
func wholeWords(s string, from, to int) bool {
	isDigit := func(i int) bool { return s[i] >= '0' && s[i] <= '9' }
	isLetter := func(i int) bool { return s[i] >= 'a' && s[i] <= 'z' }
	switch {
	case from > 0 && s[from-1] != ' ':
		return false
	case to == len(s):
		return true
	}
	return !(isDigit(to-1) && isDigit(to)) && !(isLetter(to-1) && (isLetter(to) || isDigit(to)))
}
