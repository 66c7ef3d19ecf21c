package bench

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Paper is a publication whose figures experiments reproduce.
type Paper struct {
	Short   string // prefix of its sources: "RCUD"
	Title   string
	Authors string
	Venue   string // conference or journal, and year

	// Figures of a shorter version of the paper, which is called Short and "short", and the same
	// figures here.
	shorter map[string]string
}

// Papers lists the papers that experiments reproduce.
var Papers = []*Paper{
	{
		Short:   "RCUD",
		Title:   "On using Connection-Oriented vs. Connection-Less Transport for Performance and Scalability of Collective and One-sided Operations",
		Authors: "Mamidala, Narravula, Vishnu, Santhanaraman, Panda", Venue: "PPoPP 2007",
	},
	{
		Short: "IWARP", Title: "High Performance MPI over iWARP: Early Experiences",
		Authors: "Narravula, Mamidala, Vishnu, Santhanaraman, Panda", Venue: "ICPP 2007",
	},
	{
		Short: "SDP", Title: "Advanced Flow-control Mechanisms for the Sockets Direct Protocol over InfiniBand",
		Authors: "Balaji, Bhagvat, Panda, Thakur, Gropp", Venue: "Argonne preprint P1422-0507, 2007",
		shorter: map[string]string{
			"4": "6", "4a": "6a", "4b": "6b", "5": "8", "6": "9", "6a": "9", "6b": "9", "7": "10", "7a": "10a", "7b": "10b",
		},
	},
	{
		Short: "ACP", Title: "Evaluation of On-Demand Message-Passing Module over RDMA Network",
		Authors: "Nanri, Soga",
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
func (e *Experiment) Paper() *Paper { return paperOf(e.Source) }

// paperOf returns the publication of a source, or nil.
func paperOf(source string) *Paper {
	short, _, _ := strings.Cut(source, " ")
	i := slices.IndexFunc(Papers, func(p *Paper) bool { return p.Short == short })
	if i < 0 {
		return nil
	}
	return Papers[i]
}

// paperSources returns the source of e, and those of its statements that are of a paper, each once.
func (e *Experiment) paperSources() []string {
	sources := []string{e.Source}
	for _, s := range e.Claims {
		if paperOf(s.Source) != nil && !slices.Contains(sources, s.Source) {
			sources = append(sources, s.Source)
		}
	}
	return sources
}

// Papers returns the publications of the sources of e.
func (e *Experiment) Papers() (papers []*Paper) {
	for _, source := range e.paperSources() {
		if p := paperOf(source); p != nil && !slices.Contains(papers, p) {
			papers = append(papers, p)
		}
	}
	return papers
}

// Reported returns the results of the paper that the statements of e are about.
func (e *Experiment) Reported() string {
	var reported []string
	for _, s := range e.Claims {
		if s.Paper != "" && !slices.Contains(reported, s.Paper) {
			reported = append(reported, s.Paper)
		}
	}
	return strings.Join(reported, "; ")
}

// Figure returns the part of the source of e that names the figure: "fig. 6a" of "RCUD fig. 6a".
func (e *Experiment) Figure() string {
	if p := e.Paper(); p != nil {
		return strings.TrimPrefix(e.Source, p.Short+" ")
	}
	return ""
}

// CompareFigures compares the numbers of the figures of two experiments, and then their letters.
func CompareFigures(a, b *Experiment) int {
	na, ra := a.figureNumber()
	nb, rb := b.figureNumber()
	return cmp.Or(cmp.Compare(na, nb), cmp.Compare(ra, rb))
}

// figureNumber returns the number of the figure and its letter. A figure without a number has
// number 0.
func (e *Experiment) figureNumber() (n int, letter string) {
	figure := e.Figure()
	i := strings.IndexAny(figure, "0123456789")
	if i < 0 {
		return 0, figure
	}
	rest := strings.TrimLeft(figure[i:], "0123456789")
	n, _ = strconv.Atoi(figure[i : len(figure)-len(rest)]) // digits only
	return n, rest
}

// Spellings of figures and tables: "Figure 6(a)", "figs. 6a", "tables I".
var (
	figureWords = regexp.MustCompile(`\b(?:figures?|figs?\.?)\s*`)
	tableWords  = regexp.MustCompile(`\btables?\b`)
	partLetters = regexp.MustCompile(`(\d)\s*\(([a-z])\)`)
	lists       = regexp.MustCompile(`\s*(?:,|\band\b)\s*(?:fig\. |table )?`)
)

// partOfFigure matches the name of a part of a figure, which the papers call a, b and c.
var partOfFigure = regexp.MustCompile(`(\bfig\. \d+)[abc]$`)

// normalizeSource returns s in the spelling in which sources are compared.
func normalizeSource(s string) string {
	s = figureWords.ReplaceAllString(strings.ToLower(s), "fig. ")
	s = partLetters.ReplaceAllString(s, "$1$2")
	return strings.Join(strings.Fields(tableWords.ReplaceAllString(s, "table")), " ")
}

// figureForms returns the normalized form of each figure that s lists: "acp fig. 11" and "acp
// fig. 12" for "ACP figs. 11, 12".
func figureForms(s string) []string {
	first, others, _ := strings.Cut(lists.ReplaceAllString(normalizeSource(s), ","), ",")
	forms := []string{first}
	if i := strings.LastIndexByte(first, ' '); i >= 0 && others != "" {
		for other := range strings.SplitSeq(others, ",") {
			forms = append(forms, first[:i+1]+other)
		}
	}
	return forms
}

// inShorterVersion returns the form of a figure that form names by its number in a shorter version
// of its paper, or form itself: "sdp fig. 6a" for "sdp short fig. 4a".
func inShorterVersion(form string) string {
	for _, p := range Papers {
		figure, ok := strings.CutPrefix(form, strings.ToLower(p.Short)+" short fig. ")
		if here := p.shorter[figure]; ok && here != "" {
			return strings.ToLower(p.Short) + " fig. " + here
		}
	}
	return form
}

// fromSource reports whether e, or a statement of it, is about a source named by pattern: a paper by
// its short name or by words of its title, figures by their numbers, or both. "fig. 6" includes 6a
// and 6b, and "fig. 6a" a whole fig. 6, but "fig. 1" does not include 10, and "figs. 6a, 8" are two
// figures.
func (e *Experiment) fromSource(pattern string) bool {
	pattern = strings.TrimSpace(pattern)
	if pattern == "" {
		return false
	}
	for _, form := range figureForms(pattern) {
		if e.isFigure(inShorterVersion(form)) {
			return true
		}
	}
	return len(pattern) > 3 && slices.ContainsFunc(e.Papers(), func(p *Paper) bool {
		return strings.Contains(strings.ToLower(p.Title), strings.ToLower(pattern))
	})
}

// isFigure reports whether a figure of e has the normalized form as whole words, or is the whole one
// whose part the form names: "sdp fig. 9" for "sdp fig. 9b" and "fig. 9b".
func (e *Experiment) isFigure(form string) bool {
	whole := partOfFigure.ReplaceAllString(form, "$1")
	for _, source := range e.paperSources() {
		for _, figure := range figureForms(source) {
			if containsWords(figure, form) || strings.HasSuffix(" "+figure, " "+whole) {
				return true
			}
		}
	}
	return false
}

// containsWords reports whether s has the words of form, which is not empty.
func containsWords(s, form string) bool {
	for at := 0; form != ""; at++ {
		i := strings.Index(s[at:], form)
		if i < 0 {
			break
		}
		at += i
		if wholeWords(s, at, at+len(form)) {
			return true
		}
	}
	return false
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
