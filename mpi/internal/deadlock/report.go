package deadlock

import (
	"fmt"
	"slices"
	"strings"
)

// FormatRanks formats a list of ranks: "rank 1", "ranks 0 to 2 and 5". It abbreviates
// long lists.
func FormatRanks(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	var runs []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		switch {
		case j > i+1:
			runs = append(runs, fmt.Sprintf("%d to %d", ranks[i], ranks[j]))
			i = j + 1
		default:
			runs = append(runs, fmt.Sprint(ranks[i]))
			i++
		}
		if len(runs) == maxRuns && i < len(ranks) {
			runs = append(runs, fmt.Sprintf("%d more", len(ranks)-i))
			break
		}
	}
	last := len(runs) - 1
	switch last {
	case -1:
		return "no rank"
	case 0:
		return "ranks " + runs[0]
	}
	return "ranks " + strings.Join(runs[:last], ", ") + " and " + runs[last]
}

// Maximum number of ranges in a list of ranks, and of lines of a section.
const (
	maxRuns  = 8
	maxLines = 40
)

// String returns the report as text. Ranks are those of the job.
func (r *Report) String() string {
	var b strings.Builder
	r.writeMismatches(&b)
	r.writeKnot(&b)
	r.writeRanks(&b)
	r.writeMessages(&b)
	return b.String()
}

func (r *Report) writeMismatches(b *strings.Builder) {
	for _, m := range r.Mismatches {
		fmt.Fprintf(b, "Collective calls of %s that do not match:\n", m.Comm)
		for _, g := range m.Calls {
			fmt.Fprintf(b, "    %s: %s%s\n", FormatRanks(g.Ranks), g.Call.String(), formatLocation(g.At))
		}
	}
}

// writeKnot writes the cycle of ranks that wait for each other.
func (r *Report) writeKnot(b *strings.Builder) {
	if len(r.Knot) == 0 {
		return
	}
	ranks := make([]int, len(r.Cycle))
	unsent := len(r.Cycle) > 0
	for i, e := range r.Cycle {
		ranks[i] = e.Rank
		unsent = unsent && e.Call.Unmet && !r.mayBeSent(e)
	}
	switch len(ranks) {
	case 0:
	case 1:
		title := "waits for itself"
		if r.Cycle[0].Call.Any {
			title = "waits for a message of any rank, and is the only rank that could send it"
		}
		fmt.Fprintf(b, "Deadlock: rank %d %s:\n", ranks[0], title)
	default:
		sorted := slices.Sorted(slices.Values(ranks))
		fmt.Fprintf(b, "Deadlock: %s wait for one another:\n", FormatRanks(sorted))
	}
	polls := false
	for i, e := range r.Cycle {
		if i == maxLines {
			fmt.Fprintf(b, "    and %d more\n", len(r.Cycle)-i)
			break
		}
		verb := "waits in"
		if e.Call.Polls {
			verb, polls = "polls", true
		}
		fmt.Fprintf(b, "    rank %d %s %s for %s, for %s\n", e.Rank, verb, e.Call, e.formatTargets(), formatDuration(e.Call.Millis))
	}
	r.writeUnsent(b)
	if unsent {
		b.WriteString("    None of these messages has been sent.\n")
	}
	if more := len(r.Knot) - len(r.Cycle); more > 0 && len(r.Cycle) > 0 {
		rest := slices.DeleteFunc(slices.Clone(r.Knot), func(rank int) bool { return slices.Contains(ranks, rank) })
		fmt.Fprintf(b, "    %s cannot continue without them.\n", FormatRanks(rest))
	}
	b.WriteString("    It ends only if another goroutine of these ranks makes a call")
	if polls {
		b.WriteString(", or stops polling")
	}
	b.WriteString(".\n")
}

// formatTargets formats the ranks of which the edge waits for one.
func (e *Edge) formatTargets() string {
	switch {
	case !e.Call.Any:
		return fmt.Sprintf("rank %d", e.For)
	case len(e.Call.For) == 1 && e.For == e.Rank:
		return "itself"
	}
	return e.Call.formatTargets()
}

// writeUnsent writes, for each rank of the cycle that waits for any of several, why
// none of them can satisfy it.
func (r *Report) writeUnsent(b *strings.Builder) {
	for i, e := range r.Cycle {
		if !e.Call.Any || len(e.Call.For) < 2 {
			continue
		}
		if i == maxLines {
			break
		}
		verb := "does what it waits for"
		if e.Call.isReceive() {
			verb = "sends"
		}
		fmt.Fprintf(b, "    None of those that rank %d waits for %s, because all of them wait: %s.\n", e.Rank, verb, r.formatReasons(e))
	}
}

// formatReasons formats the calls in which the targets of an edge wait, grouped by
// call.
func (r *Report) formatReasons(e Edge) string {
	var order []string
	ranks := map[string][]int{}
	for _, rank := range e.Call.For {
		text := "in this call"
		if rank != e.Rank {
			text = r.formatWait(rank)
		}
		if ranks[text] == nil {
			order = append(order, text)
		}
		ranks[text] = append(ranks[text], rank)
	}
	var list []string
	for i, text := range order {
		if i == maxRuns {
			list = append(list, fmt.Sprintf("and %d more", len(order)-i))
			break
		}
		list = append(list, FormatRanks(ranks[text])+" "+text)
	}
	return strings.Join(list, "; ")
}

// formatWait formats the first foreground call in which a rank waits.
func (r *Report) formatWait(rank int) string {
	if s := r.stateByRank[rank]; s != nil {
		for i := range s.Calls {
			if c := &s.Calls[i]; !c.Aside {
				return "in " + c.String()
			}
		}
	}
	return "in a call that is not known"
}

// isReceive reports whether a call waits only for a message.
func (c *Call) isReceive() bool {
	return strings.HasPrefix(c.What, "Recv") || strings.HasPrefix(c.What, "Probe")
}

// mayBeSent reports whether the message that an edge waits for may be in flight, or
// whether the call is no receive.
func (r *Report) mayBeSent(e Edge) bool {
	if !strings.HasPrefix(e.Call.What, "Recv") {
		return true
	}
	from := []int{e.For}
	if e.Call.Any {
		from = e.Call.For
	}
	return slices.ContainsFunc(from, func(rank int) bool {
		s := r.stateByRank[rank]
		return s == nil || s.Left.Sends+s.More > 0 ||
			slices.ContainsFunc(s.Sends, func(m Message) bool { return m.To == e.Rank && m.Comm == e.Call.Comm })
	})
}

// An activity is a call or state of ranks, and its duration.
type activity struct {
	text   string
	millis int64
	ranks  []int
}

// writeRanks writes the activity of each rank, grouped by activity.
func (r *Report) writeRanks(b *strings.Builder) {
	var lines []activity
	index := map[string]int{}
	for _, s := range r.States {
		for _, d := range s.listActivities() {
			i, ok := index[d.text]
			if !ok {
				i = len(lines)
				index[d.text] = i
				lines = append(lines, d)
			}
			lines[i].ranks = append(lines[i].ranks, s.Rank)
			lines[i].millis = max(lines[i].millis, d.millis)
		}
	}
	b.WriteString("What the ranks do:\n")
	for i, l := range lines {
		if i == maxLines {
			fmt.Fprintf(b, "    and %d lines more\n", len(lines)-i)
			break
		}
		fmt.Fprintf(b, "    %s: %s, for %s\n", FormatRanks(l.ranks), l.text, formatDuration(l.millis))
	}
	if len(r.NoReply) > 0 {
		fmt.Fprintf(b, "    %s: no reply\n", FormatRanks(r.NoReply))
	}
	losses := 0
	for _, s := range r.States {
		for _, lost := range s.Lost {
			if losses++; losses <= maxLines {
				fmt.Fprintf(b, "    rank %d has lost %s\n", s.Rank, lost)
			}
		}
	}
	if losses > maxLines {
		fmt.Fprintf(b, "    and %d more lost ranks\n", losses-maxLines)
	}
}

// listActivities returns the activities of a rank.
func (s *State) listActivities() (list []activity) {
	if !s.isBlocked() {
		text := "in no call of MPI"
		if s.Last != "" {
			text += " after " + s.Last
		}
		list = append(list, activity{text: text, millis: s.Quiet})
	}
	for i := range s.Calls {
		c := &s.Calls[i]
		text, waits, cause := c.String(), " waits for ", c.Why
		switch {
		case c.Aside:
			text = "in the background " + text
		case c.Polls:
			text, waits = "polls "+text, ", which waits for "
		}
		if len(c.For) > 0 {
			text += waits + c.formatTargets()
		}
		if c.Busy {
			cause = strings.TrimPrefix(cause+"; it computes in between", "; ")
		}
		if cause != "" {
			text += " (" + cause + ")"
		}
		list = append(list, activity{text: text, millis: c.Millis})
	}
	if s.MoreCalls > 0 {
		list = append(list, activity{text: fmt.Sprintf("in %d more calls, of which nothing is known", s.MoreCalls), millis: s.Quiet})
	}
	return list
}

func (c *Call) formatTargets() string {
	if c.Any && len(c.For) > 1 {
		return "any of " + FormatRanks(c.For)
	}
	return FormatRanks(c.For)
}

// writeMessages writes the unmatched messages, receives and sends. Each list counts its
// omitted messages, not lines.
func (r *Report) writeMessages(b *strings.Builder) {
	write := func(title string, list func(*State) ([]Message, int)) {
		var lines []string
		more, least := 0, ""
		for _, s := range r.States {
			messages, left := list(s)
			for _, m := range messages {
				if len(lines) < maxLines {
					lines = append(lines, fmt.Sprintf("    rank %d: %s\n", s.Rank, m.String()))
				} else {
					more += max(1, m.Count)
				}
			}
			if more += left; left >= MaxLeft {
				least = "at least "
			}
		}
		if len(lines) == 0 && more == 0 {
			return
		}
		b.WriteString(title + ":\n" + strings.Join(lines, ""))
		if more > 0 {
			fmt.Fprintf(b, "    and %s%d more of these\n", least, more)
		}
	}
	write("Messages that have come and have no receive", func(s *State) ([]Message, int) { return s.Messages, s.Left.Messages })
	write("Receives that wait for their message", func(s *State) ([]Message, int) { return s.Receives, s.Left.Receives })
	write("Sends that wait", func(s *State) ([]Message, int) { return s.Sends, s.Left.Sends })
	more := 0
	for _, s := range r.States {
		more += s.More
	}
	if more > 0 {
		fmt.Fprintf(b, "And %d more messages, receives and sends that are not listed.\n", more)
	}
}

// String returns the call and its source position.
func (c *Call) String() string {
	text := c.What
	if c.Comm != "" && c.Comm != "world" {
		text += " on " + c.Comm
	}
	return text + formatLocation(c.At)
}

func formatLocation(place string) string {
	if place == "" {
		return ""
	}
	return " at " + place
}

// String returns the call's name, sequence number and arguments.
func (c *Collective) String() string {
	text := fmt.Sprintf("%s #%d", c.What, c.Seq)
	if c.With != "" {
		text += " " + c.With
	}
	return text
}

// String returns a description of the message.
func (m *Message) String() string {
	name := func(n int) string {
		if n == Any {
			return "any"
		}
		return fmt.Sprint(n)
	}
	text := ""
	if m.Count > 1 {
		text = fmt.Sprintf("%d times ", m.Count)
	}
	if m.From != Any || m.To == Any {
		text += "from " + name(m.From)
	}
	if m.From != Any && m.To != Any {
		text += " "
	}
	if m.To != Any {
		text += "to " + name(m.To)
	}
	switch {
	case m.Call > 0:
		text += fmt.Sprintf(" of collective call #%d", m.Call)
	default:
		text += ", tag " + name(m.Tag)
	}
	text += fmt.Sprintf(", %d bytes", m.Bytes)
	if m.Comm != "" && m.Comm != "world" {
		text += " on " + m.Comm
	}
	return text
}

// formatDuration formats a duration in ms.
func formatDuration(millis int64) string {
	switch {
	case millis < 10_000:
		return fmt.Sprintf("%.1f s", float64(millis)/1000)
	case millis < 600_000:
		return fmt.Sprintf("%d s", millis/1000)
	}
	return fmt.Sprintf("%d min", millis/60_000)
}
