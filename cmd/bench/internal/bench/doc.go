// Package bench defines experiments: their description, their registry,
// the rows they emit and the statements that the rows judge.
//
// An experiment is registered by a file in cmd/bench/internal/experiments:
//
//	func init() {
//		bench.Register(&bench.Experiment{
//			Name:   "verbs-latency",
//			Source: bench.Adapter, // or the paper's figure: "RCUD fig. 8"
//			Layer:  bench.LayerVerbs,
//			Claims: []bench.Statement{{
//				Sentence: "An 8-byte RC write takes at most 1.4 times a bare UDP ping-pong.",
//				Compare: bench.Ratio{Of: []string{"rc-write"}, Over: []string{"udp-spin"}, Unit: measure.Microseconds,
//					At: bench.At(8, measure.Bytes), Limit: bench.AtMost(1.4)},
//			}},
//			Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
//			Params: []bench.Param{
//				{Name: "sizes", Kind: bench.Ints, Default: "8,64,4KiB", Quick: "8", Doc: "message sizes in bytes"},
//			},
//			Tour: bench.Settings{"sizes": "8"}, // nil: not part of the tour
//			Run:  verbsLatency,
//		})
//	}
//
//	func verbsLatency(ctx context.Context, r *bench.Run) error {
//		sizes := r.Ints("sizes")
//		r.Plan(len(sizes))
//		for _, size := range sizes {
//			r.Step("rc-write of %d B", size)
//			... // a baseline of package udpraw and the target, by measure.Alternate
//			r.Emit(bench.Row{
//				Series: "rc-write", X: float64(size), XUnit: measure.Bytes, Y: us, YUnit: measure.Microseconds,
//				Stats:   &stats,
//				Against: &bench.Against{Baseline: "udp-spin", Ratio: ratio},
//			})
//		}
//		return nil
//	}
//
// Worker processes are started with proc.Options{Pin: true}, like those of the
// baseline, so that both are comparable.
//
// Run returns an error if the experiment could not run, or received wrong
// data: then its figures are not valid. A statement that is refuted is an
// [Outcome], not an error.
//
// # Statements
//
// A claim is a list of statements. Each has its place in the paper, a sentence,
// the paper's number, and a [Comparison] of rows with a limit. [Experiment.Judge]
// derives the outcomes from rows alone, so that saved rows can be judged again:
//
//   - One figure that misses the limit refutes a statement. It passes if all
//     figures hold: [Reproduced], [Beyond] the paper's number by half or more, or
//     [Holds] if the claim is our own.
//   - The rounds of a comparator may spread 1.5, and its figure may be 2 times off
//     its own best of the run. Beyond, the statement is [NotJudged], because of noise.
//     So it is if the rounds of the subject spread that much and only some miss the limit.
//   - A series that cannot be measured, such as one of a program that is not installed,
//     is a row without a figure (Row.Absent), and statements about it are NotJudged.
//   - Points that the run did not measure make a statement [NotReached].
//
// Series are named after transport and operation (rc-write, rc-send, rc-read,
// uc-write, ud-send) or socket and flow control (tcp, sdp-nic, sdp-rdma,
// sdp-credit), with -event where the waiter blocks instead of polling. Units
// are those of package measure.
//
// Related packages: proc runs worker processes, measure computes medians,
// udpraw is the baseline, verbsbench and sdpbench generate the traffic that is
// compared with it and with TCP, payload generates the data, env describes the
// machine, and report writes tables, charts and the HTML page. Command bench
// runs the experiments.
package bench
