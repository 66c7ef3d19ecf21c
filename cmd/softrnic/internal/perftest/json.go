package perftest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// A member is a member of an ordered JSON object.
type member struct {
	name  string
	value any
}

// An object is a JSON object with ordered members.
type object []member

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// A figure is a number with a fixed number of decimals.
type figure struct {
	value  float64
	digits int
}

// MarshalJSON implements json.Marshaler.
func (f figure) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.*f", f.digits, f.value), nil
}

// testInfo returns the description of the test in JSON.
func (p *plan) testInfo(dev verbs.Device) object {
	o := object{{"test", underscores(p.testTitle())}}
	if p.Events {
		o = append(o, member{"Test with events", "Using_" + dev.Name() + "_comp0"})
	}
	for _, f := range p.bannerFields(dev) {
		if f.name != "" {
			o = append(o, member{f.name, f.value})
		}
	}
	if p.TOS >= 0 {
		o = append(o, member{"TOS", p.TOS})
	}
	return o
}

func underscores(s string) string {
	return string(bytes.ReplaceAll([]byte(s), []byte(" "), []byte("_")))
}

func (p *plan) bandwidthJSON(r BandwidthRow) object {
	digits := 2
	if p.Gbits && r.Average < 0.1 {
		digits = 6
	}
	var o object
	switch p.Output {
	case OutputBandwidth:
		o = object{{"bw_avg", figure{r.Average, 6}}}
	case OutputMessageRate:
		o = object{{"msgRate_avg", figure{r.MsgRate, 6}}}
	default:
		o = object{{"MsgSize", r.Size}, {"n_iterations", r.Iters}, {"BW_peak", figure{r.Peak, digits}},
			{"BW_average", figure{r.Average, digits}}, {"MsgRate", figure{r.MsgRate, 6}}}
	}
	return withCPU(o, r.CPU)
}

func (p *plan) latencyJSON(r LatencyRow) object {
	f := func(v float64) figure { return figure{v, 2} }
	var o object
	switch {
	case p.Output == OutputLatency && p.timed:
		o = object{{"t_avg", figure{r.Average, 6}}}
	case p.Output == OutputLatency:
		o = object{{"avg_lat", figure{r.Average, 6}}}
	case p.timed:
		o = object{{"MsgSize", r.Size}, {"n_iterations", r.Iters}, {"t_avg", f(r.Average)}, {"tps_average", f(r.TPS)}}
	default:
		o = object{{"MsgSize", r.Size}, {"n_iterations", r.Iters}, {"t_min", f(r.Min)}, {"t_max", f(r.Max)},
			{"t_typical", f(r.Typical)}, {"t_avg", f(r.Average)}, {"t_stdev", f(r.Stdev)},
			{"percentile_99", f(r.P99)}, {"percentile_99.9", f(r.P999)}}
	}
	return withCPU(o, r.CPU)
}

func withCPU(o object, cpu *float64) object {
	if cpu != nil {
		o = append(o, member{"CPU_util", figure{*cpu, 2}})
	}
	return o
}

// JSON returns the report in the format of perftest's --out_json, but valid: test_info and
// results, which with All is a list with an element for each size.
func (r *Result) JSON() ([]byte, error) {
	var rows []object
	for _, row := range r.Bandwidth {
		rows = append(rows, r.plan.bandwidthJSON(row))
	}
	for _, row := range r.Latency {
		rows = append(rows, r.plan.latencyJSON(row))
	}
	var results any = rows
	if !r.plan.All && len(rows) == 1 {
		results = rows[0]
	}
	text, err := json.MarshalIndent(object{{"test_info", r.info}, {"results", results}}, "", "  ")
	return append(text, '\n'), err
}
