package main

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/debugclient"
	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/rnic/rnicdebug"
)

// A statText writes reports as text.
type statText struct {
	w   io.Writer
	all bool // counters that are 0, too
}

// writeDevice writes a device, with rates if before is not nil. With one, the report has a single
// queue pair.
func (s statText) writeDevice(r, before *debugclient.Report, one bool) {
	d := r.Device
	fmt.Fprintf(s.w, "%s  process %d (%s)  %s  %s  MTU %d  %s\n", d.Name, r.Process.PID, r.Process.Command, d.Addr, d.State, d.ActiveMTU, describeLink(d.Link))
	seconds := 0.0
	if before != nil {
		seconds = r.Time.Sub(before.Time).Seconds()
	}
	t := tabwriter.NewWriter(s.w, 0, 0, 2, ' ', 0)
	if one {
		q := r.QPs[0]
		var old *rnic.QPCounters
		if before != nil && len(before.QPs) == 1 {
			old = &before.QPs[0].Counters
		}
		s.writeCounters(t, "", q.Counters.All(), countersOrZero(old), seconds)
	} else {
		s.writeDeviceCounters(t, r, before, seconds)
	}
	t.Flush()
	s.writeQueuePairs(r.QPs)
	if !one {
		s.writeCompletionQueues(r.CQs)
	}
	fmt.Fprintln(s.w)
}

func (s statText) writeDeviceCounters(t io.Writer, r, before *debugclient.Report, seconds float64) {
	if before == nil {
		before = &debugclient.Report{}
	}
	s.writeCounters(t, "", r.Counters.All(), before.Counters.All(), seconds)
	s.writeCounters(t, "link", r.Link.All(), before.Link.All(), seconds)
	if f := r.Faults; f != nil {
		var old rnic.FaultCounters
		if before.Faults != nil {
			old = before.Faults.Counters
		}
		fmt.Fprintf(t, "  faults: %s\n", f.Spec)
		s.writeCounters(t, "fault", f.Counters.All(), old.All(), seconds)
	}
	s.writeLayers(t, r.Layers, before.Layers, seconds)
	for _, d := range r.Drops {
		if d.Packets > 0 {
			fmt.Fprintf(t, "  dropped %s\t%d\t\t%s\n", d.Reason, d.Packets, d.Description)
		}
	}
	var objects []string
	for _, o := range r.Objects {
		objects = append(objects, fmt.Sprintf("%s %d", o.Kind, o.InUse))
	}
	fmt.Fprintf(t, "  objects: %s\n", strings.Join(objects, ", "))
}

// writeCounters writes a line for each counter: the group, if it is not "", and the name, value,
// rate if seconds is not 0, and description.
func (s statText) writeCounters(t io.Writer, group string, now, before iter.Seq2[string, uint64], seconds float64) {
	next, stop := iter.Pull2(before)
	defer stop()
	for name, n := range now {
		_, old, _ := next()
		if n == 0 && !s.all {
			continue
		}
		rate := ""
		if seconds > 0 {
			rate = fmt.Sprintf("%.0f/s", float64(int64(n-old))/seconds)
		}
		label := name
		if group != "" {
			name, label = group+"_"+name, group+" "+name
		}
		fmt.Fprintf(t, "  %s\t%d\t%s\t%s\n", label, n, rate, rnic.CounterDescription(name))
	}
}

// writeLayers writes the counters of the layers above the device.
func (s statText) writeLayers(t io.Writer, now, before []rnic.LayerInfo, seconds float64) {
	for i, l := range now {
		var old []rnic.LayerCounter
		if i < len(before) && before[i].Name == l.Name && len(before[i].Counters) == len(l.Counters) {
			old = before[i].Counters
		}
		s.writeCounters(t, l.Name, layerCounters(l.Counters), layerCounters(old), seconds)
	}
}

func layerCounters(list []rnic.LayerCounter) iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for _, c := range list {
			if !yield(c.Name, c.Value) {
				return
			}
		}
	}
}

// countersOrZero returns the counters, or zeros for nil.
func countersOrZero(c *rnic.QPCounters) iter.Seq2[string, uint64] {
	if c == nil {
		c = new(rnic.QPCounters)
	}
	return c.All()
}

// maxListed is the maximum number of queue pairs in a listing.
const maxListed = 64

func (s statText) writeQueuePairs(list []rnic.QPInfo) {
	if len(list) == 0 {
		return
	}
	t := tabwriter.NewWriter(s.w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "  QP\ttype\tstate\tpeer\tsq-psn\trq-psn\tsends\treceives\tsent\treceived\tretransmitted\n")
	for i, q := range list {
		if i == maxListed && !s.all {
			fmt.Fprintf(t, "  and %d more (--all shows them, --qp one of them)\n", len(list)-i)
			break
		}
		peer := "-"
		if q.Peer != "" {
			peer = q.Peer + "/" + debug.FormatQPN(q.DestQPN)
			if q.Link == "shm" {
				peer += " shm"
			}
		}
		receives := fmt.Sprintf("%d/%d", q.RecvQueued, q.RecvMax)
		if q.SharedQueue {
			receives = "shared"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%d\t%d\t%d/%d\t%s\t%d\t%d\t%d\n", debug.FormatQPN(q.Num), q.Type, q.State, peer, q.SQPSN, q.RQPSN,
			q.SendQueued, q.SendMax, receives, q.Counters.SentPkts, q.Counters.RcvdPkts, q.Counters.Retransmitted)
	}
	t.Flush()
	for _, q := range list {
		if len(q.History) > 0 {
			fmt.Fprintf(s.w, "  QP %s is in %s; `softrnic history --qp %[1]s` shows the transitions\n", debug.FormatQPN(q.Num), q.State)
		}
	}
}

func (s statText) writeCompletionQueues(list []rnic.CQInfo) {
	if len(list) == 0 {
		return
	}
	t := tabwriter.NewWriter(s.w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "  CQ\tused\tarmed\tusers\n")
	for i, q := range list {
		if i == maxListed && !s.all {
			fmt.Fprintf(t, "  and %d more\n", len(list)-i)
			break
		}
		used := fmt.Sprintf("%d/%d", q.Used, q.Depth)
		if q.Overrun {
			used += " overrun"
		}
		if q.Unsignaled > 0 {
			used += fmt.Sprintf(", %d successes unsignaled", q.Unsignaled)
		}
		fmt.Fprintf(t, "  %d\t%s\t%s\t%d\n", q.Num, used, q.Armed, q.Users)
	}
	t.Flush()
	for _, q := range list {
		if q.Hint != "" {
			fmt.Fprintf(s.w, "  CQ %d: %s\n", q.Num, q.Hint)
		}
	}
}

// describeLink returns the link's name and its offloads.
func describeLink(l rnic.LinkInfo) string {
	words := l.Name
	for _, c := range []struct {
		name string
		on   bool
	}{{"gso", l.GSO}, {"gro", l.GRO}, {"mmsg", l.MMsg}} {
		if c.on {
			words += " " + c.name
		}
	}
	return words
}

// writeMetrics writes the reports in the text format of Prometheus, with a label for each process.
func writeMetrics(w io.Writer, peers []debugclient.Peer) error {
	registry := prometheus.NewRegistry()
	for _, p := range peers {
		labels := prometheus.Labels{"pid": fmt.Sprint(p.PID), "endpoint": p.Client.Addr()}
		if err := prometheus.WrapRegistererWith(labels, registry).Register(rnicdebug.NewCollector(p.Report)); err != nil {
			return err
		}
	}
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return nil
}

// writeJSONLine writes one value on a line.
func writeJSONLine(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
