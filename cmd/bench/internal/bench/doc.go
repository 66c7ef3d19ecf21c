// Package bench holds the experiments' common ground: what an experiment is,
// where it is registered, the rows it emits and the verdict it ends with.
//
// An experiment is one file in cmd/bench/internal/experiments:
//
//	func init() {
//		bench.Register(&bench.Experiment{
//			Name:   "verbs-latency",
//			Source: bench.Adapter, // or the paper's figure: "RCUD fig. 8"
//			Layer:  bench.LayerVerbs,
//			Claim:  "An 8-byte RC write takes at most 1.4 times a bare UDP ping-pong.",
//			Axes:   []bench.Axis{{Name: "message size", Unit: measure.Bytes}},
//			Params: []bench.Param{
//				{Name: "sizes", Kind: bench.Ints, Default: "8,64,4KiB", Quick: "8", Doc: "message sizes in bytes"},
//			},
//			Tour: bench.Settings{"sizes": "8"}, // leave it nil and the tour passes by
//			Run:  verbsLatency,
//		})
//	}
//
//	func verbsLatency(ctx context.Context, r *bench.Run) (bench.Verdict, error) {
//		sizes := r.Ints("sizes")
//		r.Plan(len(sizes))
//		for _, size := range sizes {
//			r.Step("rc-write of %d B", size)
//			... // a baseline of package udpraw and the subject, by measure.Alternate
//			r.Emit(bench.Row{
//				Series: "rc-write", X: float64(size), XUnit: measure.Bytes, Y: us, YUnit: measure.Microseconds,
//				Stats:   &stats,
//				Against: &bench.Against{Baseline: "udp-spin", Ratio: ratio},
//			})
//		}
//		return bench.Verdict{Holds: ratio <= 1.4, Why: fmt.Sprintf(...)}, nil
//	}
//
// Worker processes are started with proc.Options{Pin: true}, as those of the
// baseline are: only then are the two comparable.
//
// Run's error says that the experiment could not run, or that an answer was
// wrong: then the figures are worth nothing. A claim that does not hold is a
// Verdict and no error.
//
// Series are named after transport and operation (rc-write, rc-send, rc-read,
// uc-write, ud-send) or socket and flow control (tcp, sdp-nic, sdp-rdma,
// sdp-credit), with -event where the waiter blocks instead of polling. Units
// are those of package measure.
//
// The other rooms: package proc runs worker processes, measure takes medians,
// udpraw is the baseline, verbsbench and sdpbench make the traffic that is
// compared with it and with TCP, payload is what they send, env describes the
// machine, report makes tables, charts and the page. Command bench is the
// front door.
package bench
