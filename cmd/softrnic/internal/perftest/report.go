package perftest

import (
	"fmt"
	"io"
	"math"
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
