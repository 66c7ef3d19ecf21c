package perftest

import (
	"fmt"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/verbs"
)

// A constraint is a condition on the options.
type constraint struct {
	violated bool
	option   string
	reason   string
}

// inRange returns the constraint of a range.
func inRange(option string, value, least, most int) constraint {
	return constraint{value < least || value > most, option, fmt.Sprintf("%d is not one of %d to %d", value, least, most)}
}

// maxAnySize is the maximum of -s in bytes.
const maxAnySize = 1 << 30

// validate returns the first violated constraint.
func (o *Options) validate() error {
	for _, rules := range [][]constraint{o.rangeConstraints(), o.combinationConstraints(), o.outputConstraints()} {
		for _, r := range rules {
			if r.violated {
				return option.Errorf(r.option, "%s", r.reason)
			}
		}
	}
	return nil
}

func (o *Options) rangeConstraints() []constraint {
	iters := inRange("-n", o.Iters, 5, maxIters)
	iters.violated = iters.violated && o.Duration == 0 && !o.Infinite
	rx := inRange("-r", o.RxDepth, 1, maxRx)
	rx.violated = rx.violated && o.RxDepth != 0
	cqMod := inRange("-Q", o.CQMod, 1, maxCQMod)
	cqMod.violated = cqMod.violated && o.CQMod != 0
	return []constraint{
		inRange("-p", o.Port, 0, 65535),
		{o.Port == 0 && o.Server != "", "-p", "a client needs the server's port"},
		inRange("-s", o.Size, 1, maxAnySize),
		iters, rx, cqMod,
		inRange("-t", o.TxDepth, 1, maxDepth),
		inRange("-q", o.QPs, 1, maxQPs),
		inRange("-l", o.PostList, 1, o.TxDepth),
		inRange("--recv_post_list", o.RecvPostList, 1, maxRx),
		inRange("--cqe_poll", o.PollBatch, 1, maxRx),
		inRange("-I", o.Inline, -1, maxInline),
		inRange("-S", o.SL, 0, 15),
		inRange("--tclass", o.TrafficClass, 0, 255),
		inRange("-u", o.QPTimeout, 0, 31),
		inRange("--retry_count", o.RetryCount, 0, 7),
		inRange("-T", o.TOS, -1, 255),
		inRange("-o", o.OutReads, 0, 255),
		{o.MTU > verbs.MTU4096, "-m", "the MTU is 256, 512, 1024, 2048 or 4096"},
		{o.Duration < 0, "-D", "a test cannot take negative time"},
		{o.Margin > 0 && 2*o.Margin >= o.Duration && o.Duration > 0, "-f", "the margins leave nothing of the duration"},
		{o.Rate.Limit < 0 || o.Rate.Burst < 0, "--rate_limit", "cannot be negative"},
		{o.Device == nil && o.Open == nil, "device", "none given"},
	}
}

func (o *Options) combinationConstraints() []constraint {
	t := o.Test
	bandwidth := t.Metric == Bandwidth
	timed := o.Duration > 0 || o.Infinite
	return []constraint{
		{o.Connection != verbs.RC && o.Connection != verbs.UC && o.Connection != verbs.UD, "-c", "there are RC, UC and UD"},
		{o.Connection == verbs.UD && t.Verb != Send, "-c", "datagrams can only be sent"},
		{o.Connection == verbs.UC && t.fetches(), "-c", "unreliable connections have no reads and no atomics"},
		{t.Verb == Atomic && o.Size != atomicSize, "-s", "atomics have 8 bytes"},
		{t.Verb == Atomic && o.All, "-a", "atomics have 8 bytes"},
		{t.Verb == Atomic && o.Atomic != FetchAndAdd && o.Atomic != CmpAndSwap, "-A", "there are FETCH_AND_ADD and CMP_AND_SWAP"},
		{o.All && timed, "-D", "does not go with all sizes"},
		{o.Events && timed, "-e", "does not go with a duration"},
		{o.Bidirectional && !bandwidth, "-b", "is for bandwidth tests"},
		{o.QPs > 1 && !bandwidth, "-q", "latency is that of one queue pair"},
		{(o.PostList > 1 || o.RecvPostList > 1) && !bandwidth, "-l", "lists are for bandwidth tests"},
		{!timed && o.Iters%o.PostList != 0, "-l", "the iterations have to be a multiple of the list"},
		{!timed && o.Iters%o.RecvPostList != 0, "--recv_post_list", "the iterations have to be a multiple of the list"},
		{o.PostList > 1 && o.CQMod > 0 && o.PostList%o.CQMod != 0, "-Q", "the list has to be a multiple of it"},
		{o.WithImm && t.fetches(), "--write_with_imm", "only what is written or sent carries an immediate"},
		{o.UseSRQ && t.Verb != Send, "--use-srq", "is for send tests"},
		{o.UseSRQ && o.RxDepth != 0 && o.QPs > o.RxDepth, "--use-srq", "each queue pair needs a receive"},
		{o.Infinite && !bandwidth, "--run_infinitely", "is for bandwidth tests"},
		{o.Infinite && o.Bidirectional && o.consumesReceives(), "--run_infinitely", "does not go with sends both ways"},
		{o.Gap > 0 && bandwidth, "--latency_gap", "is for latency tests"},
		{o.Rate.Limit > 0 && (!bandwidth || t.Verb == Atomic || o.Bidirectional && o.consumesReceives()), "--rate_limit", "is for bandwidth tests of sends, writes and reads, and not of sends both ways"},
		{o.Rate.Limit > 0 && o.Infinite, "--rate_limit", "does not go with --run_infinitely"},
		{o.TOS >= 0 && !o.RDMACM, "-T", "is for what -R connects"},
		{o.RDMACM && o.Connection == verbs.UC, "-R", "the RDMA CM connects no UC"},
		{o.WarmUp && o.consumesReceives(), "--perform_warm_up", "would take receives"},
		{o.Validate && timed, "--data_validation", "needs a number of iterations"},
	}
}

func (o *Options) outputConstraints() []constraint {
	bandwidth := o.Test.Metric == Bandwidth
	return []constraint{
		{(o.Histogram || o.Unsorted || o.Cycles) && bandwidth, "-H", "-H, -U and -C are for latency tests"},
		{o.CPUUtil && o.Duration == 0 && !o.Infinite, "--cpu_util", "needs a duration (-D)"},
		{o.Output != OutputFull && o.Output != OutputLatency && !bandwidth, "--output", "of a latency test is latency"},
		{o.Output != OutputFull && o.Output != OutputBandwidth && o.Output != OutputMessageRate && bandwidth, "--output", "of a bandwidth test is bandwidth or message_rate"},
		{o.ReportBoth && !o.Bidirectional, "--report-both", "needs both directions (-b)"},
		{(o.LimitBW != 0 || o.LimitRate != 0) && !bandwidth, "-w", "-w and -y are for bandwidth tests"},
		{o.LimitBW < 0 || o.LimitRate < 0, "-w", "a limit cannot be negative"},
		{len(o.Counters) > 0 && o.Counter == nil, "-W", "the device has no counters"},
	}
}
