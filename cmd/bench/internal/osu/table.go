package osu

import (
	"fmt"
	"io"
	"strings"
)

// Widths of columns, as configured in the original.
const (
	sizeWidth = 10
	width     = 18
	lastWidth = 12 // width of the iterations column
)

// A table writes the output. Without a writer it writes nothing.
type table struct {
	w io.Writer
	t Test
	o Options
}

func (t table) writef(format string, args ...any) error {
	if t.w == nil {
		return nil
	}
	_, err := fmt.Fprintf(t.w, format, args...)
	return err
}

// writeHeader writes the lines above the rows.
func (t table) writeHeader(r *runner) error {
	var b strings.Builder
	title := fmt.Sprintf("# OSU MPI %s Test v7.4\n", t.t.Title)
	switch t.t.Name {
	case "mbw_mr":
		fmt.Fprintf(&b, "%s# [ pairs: %d ] [ window size: %d ]\n", title, r.pairs, t.o.Window)
	case "latency_mt":
		fmt.Fprintf(&b, "# Number of Sender threads: %d \n# Number of Receiver threads: %d\n\n%s", t.o.Senders, t.o.Receivers, title)
	case "latency_mp":
		fmt.Fprintf(&b, "# Number of forked processes in sender: %d\n# Number of forked processes in receiver: %d\n\n%s", t.o.Senders, t.o.Receivers, title)
	default:
		b.WriteString(t.titleLines(title))
	}
	if t.hasSizes() {
		if t.t.Name != "get_acc_latency" { // the original has a different header
			fmt.Fprintf(&b, "# Datatype: %s.\n", strings.ToUpper(t.o.Type.String()))
		}
		fmt.Fprintf(&b, "%-*s", sizeWidth, "# Size")
	}
	switch {
	case t.t.shape == showBandwidth:
		fmt.Fprintf(&b, "%*s", width, "Bandwidth (MB/s)")
	case t.t.shape == showRate && t.o.NoRate:
		fmt.Fprintf(&b, "%*s", width, "MB/s")
	case t.t.shape == showRate:
		fmt.Fprintf(&b, "%*s%*s", width, "MB/s", width, "Messages/s")
	case t.t.win != nil:
		fmt.Fprintf(&b, "%*s", width, "Latency (us)")
	case t.hasSizes():
		fmt.Fprintf(&b, "%*s", width, "Avg Latency(us)")
	default:
		b.WriteString("# Avg Latency(us)")
	}
	if t.showsMinMax() {
		fmt.Fprintf(&b, "%*s%*s%*s", width, "Min Latency(us)", width, "Max Latency(us)", lastWidth, "Iterations")
	}
	if t.o.Validate && t.hasSizes() {
		fmt.Fprintf(&b, "%*s", width, "Validation")
	}
	for _, p := range t.o.Tail {
		unit := "Lat(us)"
		if t.t.shape != showLatency {
			unit = "BW(MB/s)"
		}
		fmt.Fprintf(&b, "%*s", width, fmt.Sprintf("P%d Tail %s", p, unit))
	}
	return t.writef("%s\n", &b)
}

// titleLines returns the title, which for one-sided tests includes creation and
// synchronization.
func (t table) titleLines(line string) string {
	if t.t.win == nil {
		return "\n" + line
	}
	return fmt.Sprintf("# OSU %s Test v7.4\n# Window creation: %s\n# Synchronization: %s\n", t.t.Title, creations[t.o.Creation].title, syncs[t.o.Sync].title)
}

// validationWord returns the word for a validated row.
func (t table) validationWord(r Row) string {
	words := [...]string{"Pass", "Fail"}
	if t.t.win != nil {
		words = [...]string{"passed", "failed"}
	}
	if r.Errors > 0 {
		return words[1]
	}
	return words[0]
}

// hasSizes reports whether rows have sizes: those of barrier do not.
func (t table) hasSizes() bool { return t.t.coll == nil || t.t.coll.invoke != nil }

// showsMinMax reports whether minimum and maximum are printed.
func (t table) showsMinMax() bool { return t.o.Full && t.t.shape == showLatency && t.t.win == nil }

// writeRow writes one row.
func (t table) writeRow(r Row) error {
	var b strings.Builder
	if t.hasSizes() {
		fmt.Fprintf(&b, "%-*d", sizeWidth, r.Size)
	}
	switch {
	case t.t.shape == showLatency && t.hasSizes():
		fmt.Fprintf(&b, "%*.2f", width, r.Latency)
	case t.t.shape == showLatency:
		fmt.Fprintf(&b, "%*.2f", len("# Avg Latency(us)"), r.Latency)
	default:
		fmt.Fprintf(&b, "%*.2f", width, r.Bandwidth)
	}
	if t.t.shape == showRate && !t.o.NoRate {
		fmt.Fprintf(&b, "%*.2f", width, r.Rate)
	}
	if t.showsMinMax() {
		fmt.Fprintf(&b, "%*.2f%*.2f%*d", width, r.Min, width, r.Max, lastWidth, r.Iterations)
	}
	if t.o.Validate && t.hasSizes() {
		fmt.Fprintf(&b, "%*s", width, t.validationWord(r))
	}
	for _, v := range r.Tail {
		fmt.Fprintf(&b, "%*.2f", width, v)
	}
	return t.writef("%s\n", &b)
}
