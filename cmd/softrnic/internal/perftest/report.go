package perftest

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/softrnic/softrnic/verbs"
)

// Headers of the tables, without the end of the line.
const (
	headBandwidth      = " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]"
	headBandwidthGbits = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
	headLatency        = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] "
	headLatencyTimed   = " #bytes        #iterations       t_avg[usec]    tps average"
	headCPU            = "    CPU_Util[%]"
)

// fullOutput reports whether more than one number is written.
func (p *plan) fullOutput() bool { return p.Output == OutputFull }

// writeRule writes a line of dashes.
func (p *plan) writeRule() {
	if p.fullOutput() {
		io.WriteString(p.Out, dashes)
	}
}

// writeHeader writes the header of the table.
func (p *plan) writeHeader() {
	if !p.fullOutput() {
		return
	}
	head := headBandwidth
	switch {
	case p.Test.Metric == Latency && p.timed:
		head = headLatencyTimed
	case p.Test.Metric == Latency:
		head = headLatency
	case p.Gbits:
		head = headBandwidthGbits
	}
	if p.CPUUtil {
		head += headCPU
	}
	fmt.Fprintf(p.Out, "%s%s\n", dashes, head)
}

// writeBandwidth writes a row.
func (p *plan) writeBandwidth(r BandwidthRow) {
	switch {
	case p.Output == OutputBandwidth:
		fmt.Fprintf(p.Out, "%f\n", r.Average)
	case p.Output == OutputMessageRate:
		fmt.Fprintf(p.Out, "%f\n", r.MsgRate)
	case p.Gbits && r.Average < 0.1:
		fmt.Fprintf(p.Out, " %-7d    %d           %-7.6f            %-7.6f            %-7.6f%s\n", r.Size, r.Iters, r.Peak, r.Average, r.MsgRate, cpuColumn(r.CPU))
	default:
		fmt.Fprintf(p.Out, " %-7d    %-10d       %-7.2f            %-7.2f\t\t     %-7.6f%s\n", r.Size, r.Iters, r.Peak, r.Average, r.MsgRate, cpuColumn(r.CPU))
	}
}

func cpuColumn(cpu *float64) string {
	if cpu == nil {
		return ""
	}
	return fmt.Sprintf("\t    %-3.2f", *cpu)
}

// writeLatency writes a row, after its samples if they are requested.
func (p *plan) writeLatency(r LatencyRow) {
	unit := "usec"
	if p.Cycles {
		unit = "cycles"
	}
	list := func(values []float64) {
		fmt.Fprintf(p.Out, "#, %s\n", unit)
		for i, v := range values {
			fmt.Fprintf(p.Out, "%d, %g\n", i+1, math.Round(v*1e4)/1e4)
		}
	}
	if p.Unsorted {
		list(r.samples)
	}
	if p.Histogram || p.Unsorted {
		list(r.sorted[:max(0, len(r.sorted)-outliers)])
		p.writeHeader()
	}
	switch {
	case p.Output == OutputLatency:
		fmt.Fprintf(p.Out, "%f\n", r.Average)
	case p.timed:
		fmt.Fprintf(p.Out, " %-7d       %d            %-7.2f        %-7.2f%s\n", r.Size, r.Iters, r.Average, r.TPS, cpuColumn(r.CPU))
	default:
		fmt.Fprintf(p.Out, " %-7d %d          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f\t\t%-7.2f \t\t%-7.2f%s\n",
			r.Size, r.Iters, r.Min, r.Max, r.Typical, r.Average, r.Stdev, r.P99, r.P999, cpuColumn(r.CPU))
	}
}

const dashes = "---------------------------------------------------------------------------------------\n"

// onOff returns perftest's text for a switch.
func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

// testTitle returns perftest's name of the test.
func (p *plan) testTitle() string {
	words := []string{[...]string{"Send", "RDMA_Write", "RDMA_Read", "Atomic"}[p.Test.Verb]}
	if p.Test.Verb == Atomic {
		words = append(words, string(p.Atomic))
	}
	if p.Test.Metric == Bandwidth {
		if p.Bidirectional {
			words = append(words, "Bidirectional")
		}
		if p.PostList > 1 {
			words = append(words, "Post List")
		}
		words = append(words, "BW")
	} else {
		words = append(words, "Latency")
	}
	return strings.Join(append(words, "Test"), " ")
}

// handshakeMethod returns perftest's name of the handshake's transport.
func (p *plan) handshakeMethod() string {
	if p.RDMACM || p.CommRDMACM {
		return "rdma_cm"
	}
	return "Ethernet"
}

// A bannerField is a line of the banner and a member of the JSON.
type bannerField struct {
	label  string // in the banner
	name   string // in JSON; "" is not there
	value  any
	unit   string // in the banner, behind the value
	second bool   // on the line of the one before
}

// bannerFields returns the description of the test in perftest's order.
func (p *plan) bannerFields(dev verbs.Device) []bannerField {
	list := []bannerField{
		{"Dual-port", "Dual_port", "OFF", "", false},
		{"Device", "Device", dev.Name(), "", true},
		{"Number of qps", "Number_of_qps", p.QPs, "", false},
		{"Transport type", "Transport_type", "IB", "", true},
		{"Connection type", "Connection_type", p.Connection.String(), "", false},
		{"Using SRQ", "Using_SRQ", onOff(p.UseSRQ), "", true},
		{"PCIe relax order", "PCIe_relax_order", "OFF", "", false},
		{"Lock-free", "", "OFF", "", true},
		{"ibv_wr* API", "ibv_wr_API", "OFF", "", false},
		{"Using Enhanced Reorder      ", "", "OFF", "", true},
	}
	add := func(when bool, label, name string, value any, unit string) {
		if when {
			list = append(list, bannerField{label, name, value, unit, false})
		}
	}
	bandwidth := p.Test.Metric == Bandwidth
	add(p.client || p.Bidirectional, "TX depth", "TX_depth", p.txDepth, "")
	add(p.PostList > 1, "Post List", "Post_List", p.PostList, "")
	add(p.RecvPostList > 1, "Recv Post List", "Recv_Post_List", p.RecvPostList, "")
	add(p.receives && (!p.client || p.Bidirectional), "RX depth", "RX_depth", p.rxDepth, "")
	add(bandwidth, "CQ Moderation", "CQ_Moderation", p.cqMod, "")
	add(bandwidth, "CQE Poll Batch", "", p.PollBatch, "")
	add(true, "Mtu", "Mtu", p.mtu.Bytes(), "[B]")
	add(true, "Link type", "Link_type", "Ethernet", "")
	add(true, "GID index", "GID_index", p.GIDIndex, "")
	add(!p.Test.fetches(), "Max inline data", "Max_inline_data", p.inline, "[B]")
	add(p.Test.fetches(), "Outstand reads", "Outstand_reads", p.OutReads, "")
	add(true, "rdma_cm QPs\t ", "rdma_cm_QPs", onOff(p.RDMACM), "")
	add(true, "Data ex. method", "Data_ex_method", p.handshakeMethod(), "")
	return list
}

// writeBanner writes perftest's text before the test.
func (p *plan) writeBanner(w io.Writer, dev verbs.Device) {
	fmt.Fprintf(w, "%s                    %s", dashes, p.testTitle())
	if p.Events {
		fmt.Fprintf(w, "\n Test with events. Using %s_comp0", dev.Name())
	}
	for _, f := range p.bannerFields(dev) {
		switch {
		case f.second:
			fmt.Fprintf(w, "\t\t%-15s: %v", f.label, f.value)
		case strings.Contains(f.label, "\t"): // where the others have blanks
			fmt.Fprintf(w, "\n %s: %v", f.label, f.value)
		default:
			fmt.Fprintf(w, "\n %-16s: %v%s", f.label, f.value, f.unit)
		}
	}
	fmt.Fprintf(w, "\n%s", dashes)
}

// writeAddress writes the keys of one side.
func (p *plan) writeAddress(w io.Writer, which string, k Keys) {
	fmt.Fprintf(w, " %s address: LID %s QPN %s PSN %s", which, cHex(uint64(k.LID), 4), cHex(uint64(k.QPN), 6), cHex(uint64(k.PSN), 6))
	if p.Test.Verb == Read {
		fmt.Fprintf(w, " OUT %s", cHex(uint64(k.OutReads), 4))
	}
	if p.Test.Verb == Read || p.Test.Verb == Write {
		fmt.Fprintf(w, " RKey %s VAddr %s", cHex(uint64(k.RKey), 8), cHex(k.VAddr, 16))
	}
	g := make([]string, len(k.GID))
	for i, b := range k.GID {
		g[i] = fmt.Sprintf("%02d", b)
	}
	fmt.Fprintf(w, "\n GID: %s\n", strings.Join(g, ":"))
}

// cHex formats n as C's %#0*x does: the width includes 0x, and 0 has no prefix.
func cHex(n uint64, width int) string {
	if n == 0 {
		return strings.Repeat("0", width)
	}
	return fmt.Sprintf("0x%0*x", width-2, n)
}
