package rnicdebug

import (
	"iter"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/rnic"
)

// collectorOptions configure a collector.
type collectorOptions struct {
	// sumQPs collects one series for all queue pairs (qp="all") instead of one
	// for each, for devices with thousands of them.
	sumQPs bool
}

// A collector collects snapshots of a device.
type collector struct {
	inspect func() rnic.Snapshot
	options collectorOptions
}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("softrnic_"+name, help, append([]string{"device"}, labels...), nil)
}

// counterDescs returns the descriptions of counters by name, except those in
// except.
func counterDescs(all iter.Seq2[string, uint64], except map[string]*prometheus.Desc, prefix string, labels ...string) map[string]*prometheus.Desc {
	descs := map[string]*prometheus.Desc{}
	for name := range all {
		if except[name] == nil {
			descs[name] = newDesc(prefix+name+"_total", rnic.CounterDescription(prefix+name), labels...)
		}
	}
	return descs
}

var (
	qpCounterDescs     = counterDescs(rnic.QPCounters{}.All(), nil, "", "qp")
	deviceCounterDescs = counterDescs(rnic.Counters{}.All(), qpCounterDescs, "")
	linkCounterDescs   = counterDescs(rnic.LinkCounters{}.All(), nil, "link_")
	faultCounterDescs  = counterDescs(rnic.FaultCounters{}.All(), nil, "fault_")

	deviceDesc  = newDesc("device_info", "1 for an open device.", "addr", "gid", "fw_ver", "link", "state")
	dropsDesc   = newDesc("dropped_packets_total", "Packets dropped, by reason.", "reason")
	objectsDesc = newDesc("objects", "Objects that exist, by kind.", "kind")
	qpDesc      = newDesc("qp_info", "1 for a queue pair.", "qp", "type", "state", "peer", "dest_qp")
	sendDesc    = newDesc("qp_send_queued", "Send requests that are not complete.", "qp")
	recvDesc    = newDesc("qp_recv_queued", "Posted receives that are not consumed.", "qp")
	cqUsedDesc  = newDesc("cq_completions", "Completions waiting to be polled.", "cq")
	cqDepthDesc = newDesc("cq_depth", "Capacity of the completion queue.", "cq")
	layerDesc   = newDesc("layer_total", "Counters of layers above the device, such as connection management.", "layer", "counter")
	levelDesc   = newDesc("layer_level", "Current values of layers above the device.", "layer", "level")
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, descs := range []map[string]*prometheus.Desc{qpCounterDescs, deviceCounterDescs, linkCounterDescs, faultCounterDescs} {
		for _, d := range descs {
			ch <- d
		}
	}
	for _, d := range []*prometheus.Desc{deviceDesc, dropsDesc, objectsDesc, cqUsedDesc, cqDepthDesc, layerDesc, levelDesc} {
		ch <- d
	}
	if !c.options.sumQPs {
		for _, d := range []*prometheus.Desc{qpDesc, sendDesc, recvDesc} {
			ch <- d
		}
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.inspect()
	m := metricWriter{ch: ch, device: s.Device.Name}
	for name, n := range s.Counters.All() {
		if desc := deviceCounterDescs[name]; desc != nil {
			m.sendCounter(desc, n)
		} else if c.options.sumQPs {
			m.sendCounter(qpCounterDescs[name], n, "all")
		}
	}
	for name, n := range s.Link.All() {
		m.sendCounter(linkCounterDescs[name], n)
	}
	if s.Faults != nil {
		for name, n := range s.Faults.Counters.All() {
			m.sendCounter(faultCounterDescs[name], n)
		}
	}
	for _, d := range s.Drops {
		m.sendCounter(dropsDesc, d.Packets, d.Reason)
	}
	m.sendGauge(deviceDesc, 1, s.Device.Addr, s.Device.GID, s.Device.FWVer, s.Device.Link.Name, s.Device.State)
	for _, o := range s.Objects {
		m.sendGauge(objectsDesc, o.InUse, o.Kind)
	}
	for _, q := range s.CQs {
		number := strconv.Itoa(int(q.Num))
		m.sendGauge(cqUsedDesc, q.Used, number)
		m.sendGauge(cqDepthDesc, q.Depth, number)
	}
	for _, l := range s.Layers {
		m.sendLayer(l)
	}
	if c.options.sumQPs {
		return
	}
	m.sendQP(s.ClosedQPs, "closed")
	for _, q := range s.QPs {
		number := debug.FormatQPN(q.Num)
		m.sendQP(q.Counters, number)
		dest := ""
		if q.Peer != "" {
			dest = debug.FormatQPN(q.DestQPN)
		}
		m.sendGauge(qpDesc, 1, number, q.Type, q.State, q.Peer, dest)
		m.sendGauge(sendDesc, q.SendQueued, number)
		m.sendGauge(recvDesc, q.RecvQueued, number)
	}
}

// A metricWriter writes the metrics of one device.
type metricWriter struct {
	ch     chan<- prometheus.Metric
	device string
}

func (m metricWriter) sendMetric(desc *prometheus.Desc, kind prometheus.ValueType, n float64, labels []string) {
	m.ch <- prometheus.MustNewConstMetric(desc, kind, n, append([]string{m.device}, labels...)...)
}

func (m metricWriter) sendCounter(desc *prometheus.Desc, n uint64, labels ...string) {
	m.sendMetric(desc, prometheus.CounterValue, float64(n), labels)
}

func (m metricWriter) sendGauge(desc *prometheus.Desc, n int, labels ...string) {
	m.sendMetric(desc, prometheus.GaugeValue, float64(n), labels)
}

func (m metricWriter) sendLayer(l rnic.LayerInfo) {
	for _, c := range l.Counters {
		if c.Level {
			m.sendGauge(levelDesc, int(c.Value), l.Name, c.Name)
		} else {
			m.sendCounter(layerDesc, c.Value, l.Name, c.Name)
		}
	}
}

func (m metricWriter) sendQP(c rnic.QPCounters, number string) {
	for name, n := range c.All() {
		m.sendCounter(qpCounterDescs[name], n, number)
	}
}
