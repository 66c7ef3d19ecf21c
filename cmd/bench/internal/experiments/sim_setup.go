package experiments

import (
	"runtime"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	simulated "github.com/softrnic/softrnic/internal/cluster"
	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// A simulatedSetUp is the time and the resources of Init and a first call.
type simulatedSetUp struct {
	took          time.Duration // virtual time from the start
	qps, messages float64       // queue pairs, and messages of the connection management sent, the mean of a rank
	memory        float64       // bytes of the process, the mean of a rank
}

// simulateSetUp simulates Init and a first call.
func simulateSetUp(hosts simulated.Options, o mpi.Options, call func(w mpi.World) error) (s simulatedSetUp, err error) {
	hosts.Seed = simSeed
	before, arrived := processMemory(), 0
	err = simulated.New(hosts).Run(func(h *simulated.Host) error {
		var device *rnic.Device
		o := o
		o.Manager = h.Manager()
		w, err := mpi.Init(func() (verbs.Device, error) {
			d, err := h.OpenDevice()
			device, _ = d.(*rnic.Device)
			return d, err
		}, o)
		if err != nil {
			return err
		}
		if err := call(w); err != nil {
			return err
		}
		s.took = max(s.took, time.Duration(h.Now()))
		s.qps += float64(device.Stats().QPs) / float64(hosts.Hosts)
		for _, layer := range device.Inspect().Layers {
			for _, c := range layer.Counters {
				if layer.Name == "cm" && strings.HasPrefix(c.Name, "sent_") {
					s.messages += float64(c.Value) / float64(hosts.Hosts)
				}
			}
		}
		if arrived++; arrived == hosts.Hosts {
			s.memory = (processMemory() - before) / float64(hosts.Hosts)
		}
		return w.Finalize()
	})
	return s, err
}

// processMemory returns the bytes of the process's live heap and of its stacks.
func processMemory() float64 {
	runtime.GC()
	runtime.GC() // also the memory of finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// connectMessages are the messages of a connection that come one after the other: a SIDR request of
// the lower rank, which serves and mostly wants to send first, REQ, REP and RTU.
const connectMessages = 4

// emitSetUp simulates the set-up of n ranks over UD, and of up to 1,024 over RC, and emits its
// time and resources.
func emitSetUp(r *run, bed simulated.TestBed, n int) error {
	emit := func(series, unit string, y float64) {
		r.Emit(bench.Row{Series: onTestBed(series, bed), X: float64(n), XUnit: ranksUnit, Y: y, YUnit: unit})
	}
	for _, v := range []struct {
		series, memory string
		net            mpi.Net
		most           int
		round          time.Duration
	}{
		{growthSetUpUD, growthMemoryUD, mpi.UD, 16 << 10, message(&bed.Costs, 0)},
		{growthSetUpRC, growthMemoryRC, mpi.RDMA, 1 << 10, message(&bed.Costs, 0) + connectMessages*message(&bed.Costs, mad.Size)},
	} {
		if n > v.most {
			continue
		}
		o := mpi.Options{Net: v.net, UD: fewBuffers, RDMA: mpi.RDMAOptions{Receives: 16, Sends: 16}, Algorithms: map[string]string{"barrier": "dissemination"}}
		s, err := simulateSetUp(simulated.Options{Hosts: n, Costs: bed.Costs}, o, func(w mpi.World) error { return w.Barrier() })
		if err != nil {
			return err
		}
		emit(v.series, measure.Microseconds, float64(s.took)/float64(time.Microsecond))
		emit(modelOf(v.series), measure.Microseconds, float64(growthRounds(n))*float64(v.round)/float64(time.Microsecond))
		emit(v.series, growthQPs, s.qps)
		emit(v.series, growthMessages, s.messages)
		emit(v.memory, measure.Bytes, s.memory)
	}
	emit(growthLog2Ranks, growthQPs, float64(2*growthRounds(n)+2))
	return nil
}
