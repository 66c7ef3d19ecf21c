package rnicdebug

import (
	"io"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// openQuiet opens a device that the test closes. It has no service goroutine, so that counters do
// not change between two reads.
func openQuiet(t *testing.T, name string) *rnic.Device {
	t.Helper()
	dev, err := rnic.Open(rnic.Options{Name: name, NoService: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// send sends n datagrams of a byte from dev to itself and returns the queue
// pair.
func send(t *testing.T, dev *rnic.Device, n int) verbs.QP {
	t.Helper()
	pd, err := dev.AllocPD()
	require.NoError(t, err)
	cq, err := dev.CreateCQ(n)
	require.NoError(t, err)
	q, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: n, MaxInlineData: 8}})
	require.NoError(t, err)
	require.NoError(t, verbs.ActivateUD(q, 7, 0))
	self, err := verbs.LocalEndpoint(dev, q, 0)
	require.NoError(t, err)
	ah, err := pd.CreateAH(verbs.AHAttr{DGID: self.GID, UDPPort: self.UDPPort})
	require.NoError(t, err)
	var wc [1]verbs.WC
	for range n {
		_, err = q.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled | verbs.SendInline, InlineData: []byte{1},
			AH: ah, RemoteQPN: q.Num(), RemoteQKey: 7}})
		require.NoError(t, err)
		_, err := cq.PollWait(t.Context(), wc[:])
		require.NoError(t, err)
	}
	return q
}

// scrape parses /metrics like Prometheus.
func scrape(t *testing.T, dev *rnic.Device, path string) map[string]*dto.MetricFamily {
	t.Helper()
	status, text := get(t, dev, path)
	require.Equal(t, 200, status, text)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	return families
}

// value returns the sum of a family over the metrics with the label.
func value(t *testing.T, f *dto.MetricFamily, label, want string) (sum float64) {
	t.Helper()
	require.NotNil(t, f)
	found := false
	for _, m := range f.Metric {
		for _, l := range m.Label {
			if l.GetName() == label && (l.GetValue() == want || want == "*") {
				found = true
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	require.True(t, found, "%s has no %s=%q", f.GetName(), label, want)
	return sum
}

// TestCounters compares the metrics with the device: every counter, drop and object.
func TestCounters(t *testing.T) {
	dev := openQuiet(t, "nic")
	require.NoError(t, send(t, dev, 2).Close())
	require.NoError(t, dev.SetImpair("corrupt icrc of 1st SEND"))
	q := send(t, dev, 5)
	require.NoError(t, dev.ServeDebug("127.0.0.1:0"))
	families := scrape(t, dev, "/metrics")
	s := dev.Inspect()
	for name, n := range s.Counters.All() {
		f := families["softrnic_"+name+"_total"]
		require.EqualValues(t, n, value(t, f, "device", "nic"), name)
		require.Equal(t, dto.MetricType_COUNTER, f.GetType())
		require.Equal(t, rnic.CounterDescription(name), f.GetHelp())
		require.Regexp(t, `^[A-Z].*\.$`, f.GetHelp())
	}
	require.EqualValues(t, 5, value(t, families["softrnic_sent_pkts_total"], "qp", debug.FormatQPN(q.Num())))
	require.EqualValues(t, 2, value(t, families["softrnic_sent_pkts_total"], "qp", "closed"))
	for name, n := range s.Link.All() {
		require.EqualValues(t, n, value(t, families["softrnic_link_"+name+"_total"], "device", "nic"), name)
	}
	for name, n := range s.Faults.Counters.All() {
		require.EqualValues(t, n, value(t, families["softrnic_fault_"+name+"_total"], "device", "nic"), name)
	}
	require.EqualValues(t, 1, value(t, families["softrnic_fault_corrupted_total"], "device", "nic"))
	for _, d := range s.Drops {
		require.EqualValues(t, d.Packets, value(t, families["softrnic_dropped_packets_total"], "reason", d.Reason))
	}
	for _, o := range s.Objects {
		require.EqualValues(t, o.InUse, value(t, families["softrnic_objects"], "kind", o.Kind))
	}
	require.EqualValues(t, 1, value(t, families["softrnic_device_info"], "addr", dev.Addr().String()))
	require.EqualValues(t, 1, value(t, families["softrnic_qp_info"], "state", "RTS"))
	require.EqualValues(t, 2+5, value(t, families["softrnic_cq_depth"], "cq", "*"))
	require.Zero(t, value(t, families["softrnic_cq_completions"], "cq", "*"))
	require.Zero(t, value(t, families["softrnic_qp_send_queued"], "qp", "*"))

	remove := dev.AddLayer("cm", func(yield func(string, uint64) bool) {
		_ = yield("sent_req", 3) && yield("half_open", 2)
	}, "half_open")
	defer remove()
	for _, path := range []string{"/metrics", "/metrics?per_qp=false"} {
		families := scrape(t, dev, path)
		require.EqualValues(t, 3, value(t, families["softrnic_layer_total"], "counter", "sent_req"))
		require.EqualValues(t, 2, value(t, families["softrnic_layer_level"], "level", "half_open"))
		require.EqualValues(t, 5, value(t, families["softrnic_layer_total"], "layer", "cm")+value(t, families["softrnic_layer_level"], "layer", "cm"))
	}

	sums := scrape(t, dev, "/metrics?per_qp=false")
	require.EqualValues(t, 7, value(t, sums["softrnic_sent_pkts_total"], "qp", "all"))
	require.Len(t, sums["softrnic_sent_pkts_total"].Metric, 1)
	require.Nil(t, sums["softrnic_qp_info"])

	status, text := get(t, dev, "/metrics?per_qp=some")
	require.Equal(t, 400, status)
	require.Contains(t, text, `per_qp="some": want true or false`)
}

// get returns the status and text of a path of the device's endpoint.
func get(t *testing.T, dev *rnic.Device, path string) (int, string) {
	t.Helper()
	res, err := http.Get("http://" + dev.DebugAddr() + path)
	require.NoError(t, err)
	defer res.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}
