package main

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/softrnic/softrnic/cmd/internal/size"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/perftest"
	"github.com/softrnic/softrnic/verbs"
)

// perfFlags are perftest's flags that need conversion.
type perfFlags struct {
	o           perftest.Options
	mtu         int
	bind        string
	connection  string
	duration    float64
	margin      float64
	infinite    bool
	flowLabels  []uint
	atomic      string
	gap         int
	units       string
	limitType   string
	payload     string
	output      string
	outJSON     bool
	outJSONFile string
	version     bool
	counters    []string
	ignored     []string // accepted without effect
	unsupported unsupportedFlags
}

func newPerfFlags(t perftest.Test) *perfFlags {
	o := perftest.Defaults(t)
	return &perfFlags{o: o, connection: "RC", margin: -1, atomic: string(o.Atomic), units: string(perftest.RateGiga), limitType: "SW",
		outJSONFile: "perftest_out.json"}
}

// addFlags adds the flags of a test.
func (p *perfFlags) addFlags(f *pflag.FlagSet) {
	p.addTargetFlags(f)
	p.addWorkloadFlags(f)
	if p.o.Test.Metric == perftest.Bandwidth {
		p.addBandwidthFlags(f)
	} else {
		p.addLatencyFlags(f)
	}
	p.addVerbFlags(f)
	p.addReportFlags(f)
	p.addIgnoredFlags(f)
	p.addUnsupportedFlags(f)
	f.SortFlags = true
}

func (p *perfFlags) addTargetFlags(f *pflag.FlagSet) {
	o := &p.o
	f.IntVarP(&o.Port, "port", "p", o.Port, "listen on/connect to `port`")
	f.IntVarP(&o.IBPort, "ib-port", "i", o.IBPort, "use this `port` of the device")
	f.IntVarP(&o.GIDIndex, "gid-index", "x", o.GIDIndex, "`index` into the port's GID table")
	f.VarP(size.Var(&p.mtu), "mtu", "m", "path MTU in `bytes`, 256 to 4096 (default port mtu)")
	f.IntVarP(&o.SL, "sl", "S", o.SL, "service `level`")
	f.IntVar(&o.TrafficClass, "tclass", o.TrafficClass, "traffic `class` of sent packets")
	f.UintSliceVar(&p.flowLabels, "flow_label", nil, "flow `labels` of the queue pairs, round-robin")
	f.IntVarP(&o.QPTimeout, "qp-timeout", "u", o.QPTimeout, "`code` of the local ACK timeout: 4 usec * 2^code")
	f.BoolVarP(&o.RDMACM, "rdma_cm", "R", false, "connect the queue pairs by RDMA-CM, and use it for the handshake")
	f.BoolVarP(&o.CommRDMACM, "comm_rdma_cm", "z", false, "use RDMA-CM for the handshake only")
	f.IntVarP(&o.TOS, "tos", "T", o.TOS, "`tos` of connections of -R (default off)")
	f.IntVar(&o.RetryCount, "retry_count", o.RetryCount, "`retries` of connections of -R")
	f.StringVar(&p.bind, "bind_source_ip", "", "local `address` of the handshake")
	f.BoolVar(&o.NoVersions, "dont_xchg_versions", false, "do not exchange versions and MTU")
}

func (p *perfFlags) addWorkloadFlags(f *pflag.FlagSet) {
	o := &p.o
	f.IntVarP(&o.Iters, "iters", "n", o.Iters, "messages to exchange (at least 5)")
	f.Float64VarP(&p.duration, "duration", "D", 0, "duration of the test in `seconds`")
	f.Float64VarP(&p.margin, "margin", "f", -1, "`seconds` at the start and the end that are not measured (default a quarter of the duration)")
	f.StringVarP(&p.connection, "connection", "c", p.connection, "connection `type`: RC, UC or UD")
	f.IntVarP(&o.TxDepth, "tx-depth", "t", o.TxDepth, "`requests` outstanding")
	f.BoolVar(&o.Validate, "data_validation", false, "compare the received data with the sent data (both sides, softrnic only)")
	f.StringVar(&p.payload, "payload_file_path", "", "send the words of this text `file`: 0xaaaaaaaa,0xbbbbbbbb,... (little endian)")
	f.BoolVar(&o.Reversed, "reversed", false, "let the server send")
	if o.Test.Verb != perftest.Atomic {
		f.VarP(size.Var(&o.Size), "size", "s", "`bytes` of a message")
		f.BoolVarP(&o.All, "all", "a", false, "run sizes from 2 to 2^23")
	}
	f.BoolVarP(&o.Events, "events", "e", false, "wait for completion events instead of polling")
}

func (p *perfFlags) addBandwidthFlags(f *pflag.FlagSet) {
	o := &p.o
	f.BoolVarP(&o.Bidirectional, "bidirectional", "b", false, "measure both directions at once")
	f.IntVarP(&o.QPs, "qp", "q", o.QPs, "queue `pairs`")
	f.IntVarP(&o.PostList, "post_list", "l", o.PostList, "`requests` posted at once")
	f.IntVarP(&o.CQMod, "cq-mod", "Q", 0, "signal every n-th of `n` requests (default 100; 1 above 8192 bytes)")
	f.IntVar(&o.PollBatch, "cqe_poll", o.PollBatch, "`completions` polled at once")
	f.BoolVarP(&o.NoPeak, "noPeak", "N", false, "do not compute the peak (never above 20000 iterations)")
	f.BoolVar(&o.Gbits, "report_gbits", false, "report Gbit/sec instead of MiB/sec")
	f.BoolVar(&o.ReportBoth, "report-both", false, "report the two directions separately as well")
	f.BoolVar(&p.infinite, "run_infinitely", false, "run without end and report after each duration")
	f.BoolVar(&o.MRPerQP, "mr_per_qp", false, "register memory for each queue pair")
	f.BoolVar(&o.WarmUp, "perform_warm_up", false, "send some messages before measuring")
	f.Float64VarP(&o.LimitBW, "limit_bw", "w", 0, "fail below this average `bandwidth`")
	f.Float64VarP(&o.LimitRate, "limit_msgrate", "y", 0, "fail below this message `rate`")
	f.Float64Var(&o.Rate.Limit, "rate_limit", 0, "maximum `rate` of posts")
	f.StringVar(&p.units, "rate_units", p.units, "`unit` of the rate limit: M (MiB/s), g (Gbit/s) or p (messages/s)")
	f.IntVar(&o.Rate.Burst, "burst_size", 0, "`messages` posted at a time under the rate limit (default tx-depth)")
	f.StringVar(&p.limitType, "rate_limit_type", p.limitType, "`method` of limiting the rate: SW")
}

func (p *perfFlags) addLatencyFlags(f *pflag.FlagSet) {
	o := &p.o
	f.BoolVarP(&o.Cycles, "report-cycles", "C", false, "report cycles of the processor instead of microseconds")
	f.BoolVarP(&o.Histogram, "report-histogram", "H", false, "print all results, sorted")
	f.BoolVarP(&o.Unsorted, "report-unsorted", "U", false, "print all results in their order as well")
	f.IntVar(&p.gap, "latency_gap", 0, "delay before each post in `microseconds`")
}

// addVerbFlags adds the flags that depend on the operation.
func (p *perfFlags) addVerbFlags(f *pflag.FlagSet) {
	o := &p.o
	switch o.Test.Verb {
	case perftest.Send:
		f.IntVarP(&o.RxDepth, "rx-depth", "r", 0, "`receives` posted (default 512)")
		f.IntVar(&o.RecvPostList, "recv_post_list", o.RecvPostList, "`receives` posted at once")
		f.BoolVar(&o.UseSRQ, "use-srq", false, "use one shared receive queue of rx-depth receives")
		f.BoolVar(&o.WithImm, "send_with_imm", false, "send with immediate data")
	case perftest.Write:
		f.BoolVar(&o.WithImm, "write_with_imm", false, "write with immediate data")
		f.IntVarP(&o.RxDepth, "rx-depth", "r", 0, "`receives` posted with --write_with_imm (default 512)")
	case perftest.Atomic:
		f.StringVarP(&p.atomic, "atomic_type", "A", p.atomic, "`operation`: FETCH_AND_ADD or CMP_AND_SWAP")
	}
	if o.Test.Verb == perftest.Send || o.Test.Verb == perftest.Write {
		f.VarP(size.Var(&o.Inline), "inline_size", "I", "maximum `bytes` of an inline message")
	} else {
		f.IntVarP(&o.OutReads, "outs", "o", 0, "outstanding reads or atomics (default the `maximum` of the device)")
	}
}

func (p *perfFlags) addReportFlags(f *pflag.FlagSet) {
	o := &p.o
	f.StringVar(&p.output, "output", "", "print one number only: bandwidth, message_rate or latency")
	f.BoolVar(&o.CPUUtil, "cpu_util", false, "show the utilization of the processors (with -D, on Linux)")
	f.StringSliceVarP(&p.counters, "report-counters", "W", nil, "report the increase of these `counters`, with the names of `softrnic stat`")
	f.BoolVar(&p.outJSON, "out_json", false, "save the report in a JSON file")
	f.StringVar(&p.outJSONFile, "out_json_file", p.outJSONFile, "`name` of that file")
	f.BoolVarP(&p.version, "version", "V", false, "print the version of perftest that this command implements")
}

// addIgnoredFlags adds flags that are accepted without effect.
func (p *perfFlags) addIgnoredFlags(f *pflag.FlagSet) {
	idle := func(name, letter, reason string) {
		f.BoolP(name, letter, false, reason)
		f.MarkHidden(name)
		p.ignored = append(p.ignored, name)
	}
	idle("CPU-freq", "F", "processor cycles are not used")
	idle("use_old_post_send", "", "there is one way to post")
	idle("no_lock", "", "queue pairs are safe for concurrent use")
	idle("disable_pcie_relaxed", "", "there is no bus")
	idle("disable_dynamic_polling", "", "the batch of completions has the size of cqe_poll")
	idle("no_enhanced_reorder", "", "packets are placed in order")
	idle("disable_numa", "", "memory is not bound to nodes")
	idle("data_validation_debug", "", "a wrong byte is always reported with its offset")
	idle("ipv6-addr", "", "names and addresses of both families are accepted")
	idle("ipv6", "", "the family follows from the peer's address or --addr")
	for _, v := range []struct{ name, letter, reason string }{
		{"vector", "X", "there is one completion vector"},
		{"pin_cores", "", "use taskset"},
		{"numa_node", "", "use numactl"},
		{"force-link", "", "the link is Ethernet"},
		{"dlid", "", "RoCE has no LIDs"},
		{"pkey_index", "", "there is one partition key"},
		{"hop_limit", "L", "only for raw Ethernet"},
	} {
		f.StringP(v.name, v.letter, "", v.reason)
		f.MarkHidden(v.name)
		p.ignored = append(p.ignored, v.name)
	}
}

// addUnsupportedFlags adds flags of features that do not exist here.
func (p *perfFlags) addUnsupportedFlags(f *pflag.FlagSet) {
	p.unsupported.add(f, "odp", "", noODP)
	p.unsupported.add(f, "use_hugepages", "", "a Go program does not select page sizes; transparent huge pages work")
	p.unsupported.add(f, "use_ooo", "", "packets are placed in order")
	p.unsupported.add(f, "dualport", "O", "the device has one port")
	p.unsupported.add(f, "report-per-port", "", "the device has one port")
	p.unsupported.add(f, "unsolicited_write", "", "immediate data completes a receive")
	p.unsupported.add(f, "use-null-mr", "", "there are no null memory regions")
	p.unsupported.add(f, "mcg", "g", "multicast is not supported by this test")
}

// testOptions converts the flags.
func (p *perfFlags) testOptions(c *cobra.Command, log io.Writer) (perftest.Options, error) {
	if err := p.unsupported.rejectGiven(c); err != nil {
		return p.o, err
	}
	for _, name := range p.ignored {
		if f := c.Flags().Lookup(name); f.Changed {
			fmt.Fprintf(log, "softrnic: --%s has no effect: %s\n", name, f.Usage)
		}
	}
	o := p.o
	if p.mtu != 0 {
		if err := o.MTU.UnmarshalText([]byte(strconv.Itoa(p.mtu))); err != nil {
			return o, usageErrorf("-m %d: the MTU is 256, 512, 1024, 2048 or 4096", p.mtu)
		}
	}
	if p.bind != "" {
		var err error
		if o.Bind, err = netip.ParseAddr(p.bind); err != nil {
			return o, usageErrorf("--bind_source_ip: %q is not an address", p.bind)
		}
	}
	types := map[string]verbs.QPType{"RC": verbs.RC, "UC": verbs.UC, "UD": verbs.UD}
	var known bool
	if o.Connection, known = types[p.connection]; !known {
		return o, usageErrorf("-c %s: want RC, UC or UD", p.connection)
	}
	if c.Flags().Changed("duration") && !(p.duration > 0 && p.duration <= maxSeconds) {
		return o, usageErrorf("-D %v: give a number of seconds up to %v", p.duration, maxSeconds)
	}
	if c.Flags().Changed("margin") && !(p.margin <= maxSeconds) {
		return o, usageErrorf("-f %v: give a number of seconds up to %v", p.margin, maxSeconds)
	}
	o.Duration, o.Margin, o.Infinite = toDuration(p.duration), toDuration(p.margin), p.infinite
	for _, label := range p.flowLabels {
		if label >= 1<<20 {
			return o, usageErrorf("--flow_label %d: want 20 bits", label)
		}
		o.FlowLabel = append(o.FlowLabel, uint32(label))
	}
	o.Atomic, o.Gap, o.Output, o.Counters = perftest.AtomicType(p.atomic), time.Duration(p.gap)*time.Microsecond, perftest.Output(p.output), p.counters
	o.Rate.Units = perftest.RateUnit(p.units)
	if p.limitType != "SW" {
		return o, usageErrorf("--rate_limit_type %s: the rate is limited by software (SW)", p.limitType)
	}
	if !strings.Contains("Mgp", p.units) || len(p.units) != 1 {
		return o, usageErrorf("--rate_units %q: want M, g or p", p.units)
	}
	if p.payload == "" {
		return o, nil
	}
	text, err := os.ReadFile(p.payload)
	if err != nil {
		return o, err
	}
	o.Payload, err = perftest.ParsePayload(string(text))
	return o, err
}
