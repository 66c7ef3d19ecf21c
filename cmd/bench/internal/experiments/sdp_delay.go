package experiments

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/sdpbench"
)

// delaySizes are the sizes of the messages over links with a delay.
var delaySizes = []int{256, 1 << 10, 4 << 10}

// modelUnit is the unit of a bandwidth over that of the model; see delayModel.
const modelUnit = "of the model"

func delayParam() bench.Param {
	return bench.Param{Name: "delay", Kind: bench.Pauses, Default: "0,10us,100us", Quick: "0,100us",
		Doc: "delays of packets in each direction, with which Writes of 256 B, 1 KiB and 4 KiB are measured; 0 adds none"}
}

// positive returns the delays that are not 0.
func positive(delays []time.Duration) []time.Duration {
	return slices.DeleteFunc(slices.Clone(delays), func(d time.Duration) bool { return d == 0 })
}

// plainTime formats a duration in ASCII: "10us".
func plainTime(d time.Duration) string { return strings.Replace(d.String(), "µ", "u", 1) }

// withDelay returns the suffix of series over links with a delay.
func withDelay(d time.Duration) string { return "-delay-" + plainTime(d) }

// delayVariants returns the paper's buffers over links with each delay.
func delayVariants(delays []time.Duration) (list []variant) {
	for _, d := range delays {
		list = append(list, variant{withDelay(d), sdpbench.Config{Buffers: paperBuffers, BufferBytes: paperBytes, ZeroCopy: -1, Impair: impairSpec("", plainTime(d))}})
	}
	return list
}

// delayModel returns the bandwidth in MB/s over links with a delay, from that without: a window is
// in flight for the time of its messages without the delay, and for the time by which a round trip
// is longer, in microseconds. The window of credit-based flow control is 8 messages, and that of
// the others 64 KB.
func delayModel(flow sdpbench.Transport, size int, bandwidth, longer float64) float64 {
	window := float64(paperBuffers * paperBytes)
	if flow == sdpbench.Credit {
		window = float64(paperBuffers * size)
	}
	return window / (window/bandwidth + longer) // MB/s are bytes in a microsecond
}

// pingIters is the number of round trips for the delay of a link.
const pingIters = 100

// measureDelays returns by how much longer a round trip takes, by series, in microseconds. It is more
// than the delays, because a process that sleeps until a packet is due wakes up late.
func measureDelays(ctx context.Context, r *run, all sockets) (map[string]float64, error) {
	var set seriesSet
	for _, s := range all {
		if s.Transport != sdpbench.TCP && !strings.HasSuffix(s.series, defaultSuffix) {
			set.addSeries(s.series, fullRoundTrip(s.PingRounds(claimedAt, pingIters, nil)))
		}
	}
	samples, err := r.measurePoint(ctx, &set, bench.Point{X: claimedAt, XUnit: measure.Bytes, YUnit: roundTripUnit})
	if err != nil {
		return nil, err
	}
	times := map[string]float64{}
	for _, s := range samples {
		times[s.Series] = measure.Median(s.Figures)
	}
	longer := map[string]float64{}
	for _, s := range all {
		if s.Impair != "" {
			longer[s.series] = times[s.series] - times[string(s.Transport)]
		}
	}
	return longer, nil
}

// roundTripUnit is the unit of round-trip times.
const roundTripUnit = "us of a round trip"

// emitDelayModel emits the bandwidths over links with a delay relative to the model.
func emitDelayModel(r *run, all sockets, size int, longer map[string]float64, samples []bench.Sample) {
	bandwidths := map[string][]float64{}
	for _, s := range samples {
		bandwidths[s.Series] = s.Figures
	}
	for _, s := range all {
		if s.Impair == "" || bandwidths[s.series] == nil {
			continue
		}
		var shares []float64
		for i, b := range bandwidths[s.series] {
			shares = append(shares, b/delayModel(s.Transport, size, bandwidths[string(s.Transport)][i], longer[s.series]))
		}
		r.Emit(bench.Row{Series: s.series, X: float64(size), XUnit: measure.Bytes, Y: measure.Median(shares), YUnit: modelUnit, Rounds: shares})
	}
}

func delayClaims() (claims []bench.Statement) {
	for _, d := range []time.Duration{10 * time.Microsecond, 100 * time.Microsecond} {
		suffix := withDelay(d)
		var measured, bound bench.All
		for _, size := range delaySizes {
			at := bench.At(float64(size), measure.Bytes)
			measured = append(measured, bench.Value{Of: modeSeries(suffix), Unit: modelUnit, At: at, Limit: bench.Within(0.7, 1.3)})
			bound = append(bound, bench.Ratio{Of: []string{string(sdpbench.RDMA) + suffix, string(sdpbench.NIC) + suffix}, Over: []string{string(sdpbench.Credit) + suffix},
				Unit: measure.MegabytesPerSec, At: at, Limit: bench.AtMost(1.3 * float64(paperBytes) / float64(size))})
		}
		claims = append(claims, bench.Statement{
			Source: bench.Adapter,
			Sentence: fmt.Sprintf("With %s of delay each way and Writes of 256 B, 1 and 4 KiB, each mode has the bandwidth of the model, "+
				"by which each window takes as much longer as a round trip (within 30 %%).", plainTime(d)),
			Compare: measured,
			Because: "a window is not in flight as a whole: credits come back in two halves, and a link that sleeps until a packet is due delivers those behind it at once",
		}, bench.Statement{
			Source: bench.Adapter,
			Sentence: fmt.Sprintf("With %s of delay, the bandwidth of RDMA-based and NIC-assisted flow control over credit-based is at most 8 KB over the size, "+
				"the ratio of the windows (within 30 %%): 32, 8 and 2.", plainTime(d)),
			Compare: bound,
		})
	}
	return claims
}
