package debug

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/debug/endpoint"
)

func TestReport(t *testing.T) {
	dev := open(t, "nic")
	q := send(t, dev, 3)
	c := serve(t, dev, "127.0.0.1:0")
	r, err := c.Report(t.Context())
	require.NoError(t, err)
	require.Equal(t, endpoint.Process{PID: os.Getpid(), Command: filepath.Base(os.Args[0])}, r.Process)
	require.Equal(t, "nic", r.Device.Name)
	require.EqualValues(t, 3, r.Counters.SentPkts)
	require.Equal(t, q.Num(), r.QPs[0].Num)

	b, err := json.Marshal(r)
	require.NoError(t, err)
	var again Report
	require.NoError(t, json.Unmarshal(b, &again))
	require.Equal(t, r, again)

	// The connections have gone, so nothing counts on.
	now := dev.Inspect()
	now.Now = r.Now
	require.Equal(t, now.Device, r.Device)
	require.Equal(t, now.QPs, r.QPs)
}

func TestHistory(t *testing.T) {
	dev := open(t, "")
	q := send(t, dev, 1)
	c := serve(t, dev, "127.0.0.1:0")
	info, err := c.QP(t.Context(), q.Num())
	require.NoError(t, err)
	var what []string
	for _, e := range info.History {
		what = append(what, e.What)
	}
	require.Contains(t, what, "state RTS")
	require.Contains(t, what, "-> UD_SEND_ONLY psn 0")
	_, err = c.QP(t.Context(), q.Num()^1)
	require.ErrorIs(t, err, ErrNoQP)

	for path, status := range map[string]int{
		"/qp/%d/history": 404, "/qp/0x1000000/history": 400, "/qp/-1/history": 400, "/qp/x/history": 400, "/qp/1": 404,
	} {
		got, text := get(t, c, "GET", strings.Replace(path, "%d", "2", 1))
		require.Equal(t, status, got, "%s: %s", path, text)
	}
}

// scrape parses /metrics as Prometheus does.
func scrape(t *testing.T, c *Client, path string) map[string]*dto.MetricFamily {
	t.Helper()
	status, text := get(t, c, "GET", path)
	require.Equal(t, 200, status, text)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	return families
}

// value sums a family up over the metrics that have the label.
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

// TestMetrics compares what Prometheus reads with what the device says: every
// counter, drop and object.
func TestMetrics(t *testing.T) {
	dev := open(t, "nic")
	require.NoError(t, send(t, dev, 2).Close())
	require.NoError(t, dev.SetImpair("corrupt icrc of 1st SEND"))
	q := send(t, dev, 5)
	c := serve(t, dev, "127.0.0.1:0")
	families := scrape(t, c, "/metrics")
	s := dev.Inspect()
	for info, n := range s.Counters.All() {
		f := families["softrnic_"+info.Name+"_total"]
		require.EqualValues(t, n, value(t, f, "device", "nic"), info.Name)
		require.Equal(t, dto.MetricType_COUNTER, f.GetType())
		require.Equal(t, info.Description, f.GetHelp())
	}
	require.EqualValues(t, 5, value(t, families["softrnic_sent_pkts_total"], "qp", FormatQPN(q.Num())))
	require.EqualValues(t, 2, value(t, families["softrnic_sent_pkts_total"], "qp", "destroyed"))
	for info, n := range s.Link.All() {
		require.EqualValues(t, n, value(t, families["softrnic_link_"+info.Name+"_total"], "device", "nic"), info.Name)
	}
	for info, n := range s.Faults.Counters.All() {
		require.EqualValues(t, n, value(t, families["softrnic_fault_"+info.Name+"_total"], "device", "nic"), info.Name)
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

	remove := dev.AddLayer("cm", func(yield func(string, uint64, bool)) {
		yield("sent_req", 3, false)
		yield("half_open", 2, true)
	})
	defer remove()
	for _, path := range []string{"/metrics", "/metrics?per_qp=false"} {
		families := scrape(t, c, path)
		require.EqualValues(t, 3, value(t, families["softrnic_layer_total"], "counter", "sent_req"))
		require.EqualValues(t, 2, value(t, families["softrnic_layer_level"], "level", "half_open"))
		require.EqualValues(t, 5, value(t, families["softrnic_layer_total"], "layer", "cm")+value(t, families["softrnic_layer_level"], "layer", "cm"))
	}

	sums := scrape(t, c, "/metrics?per_qp=false")
	require.EqualValues(t, 7, value(t, sums["softrnic_sent_pkts_total"], "qp", "all"))
	require.Len(t, sums["softrnic_sent_pkts_total"].Metric, 1)
	require.Nil(t, sums["softrnic_qp_info"])

	status, text := get(t, c, "GET", "/metrics?per_qp=some")
	require.Equal(t, 400, status)
	require.Contains(t, text, `per_qp="some": want true or false`)
}

// TestHost refuses what a web page could send.
func TestHost(t *testing.T) {
	c := serve(t, open(t, ""), "127.0.0.1:0")
	for host, status := range map[string]int{
		"localhost": 200, "localhost:9479": 200, "127.0.0.1:9479": 200, "[::1]:1": 200,
		"evil.example": 403, "evil.example:9479": 403, "192.0.2.1": 403, "localhost.evil.example:80": 403,
	} {
		got, _ := get(t, c, "GET", "/stat", func(r *http.Request) { r.Host = host })
		require.Equal(t, status, got, host)
	}
}

func TestIndex(t *testing.T) {
	c := serve(t, open(t, ""), "127.0.0.1:0")
	status, text := get(t, c, "GET", "/")
	require.Equal(t, 200, status)
	require.Contains(t, text, "/metrics")
	status, _ = get(t, c, "GET", "/nosuch")
	require.Equal(t, 404, status)
	status, _ = get(t, c, "POST", "/stat")
	require.Equal(t, 405, status)
}

func TestProfiles(t *testing.T) {
	c := serve(t, open(t, ""), "127.0.0.1:0")
	for path, want := range map[string]string{
		"/debug/pprof/":                    "goroutine (",
		"/debug/pprof/goroutine?debug=1":   "goroutine profile:",
		"/debug/pprof/heap":                "\x1f\x8b", // gzip
		"/debug/pprof/profile?seconds=.01": "\x1f\x8b",
		"/debug/pprof/trace?seconds=.01":   "go 1.",
	} {
		status, text := get(t, c, "GET", path)
		require.Equal(t, 200, status, path)
		require.Contains(t, text, want, path)
	}
	for path, want := range map[string]int{
		"/debug/pprof/nosuch": 404, "/debug/pprof/profile?seconds=-1": 400, "/debug/pprof/trace?seconds=NaN": 400,
		"/debug/pprof/profile?seconds=1e9": 400,
	} {
		status, _ := get(t, c, "GET", path)
		require.Equal(t, want, status, path)
	}
	_, pattern := http.DefaultServeMux.Handler(&http.Request{Method: "GET", URL: &url.URL{Path: "/debug/pprof/heap"}})
	require.Empty(t, pattern, "somebody publishes profiles where programs do not expect them")
}

func TestUnanswered(t *testing.T) {
	c, err := NewClient("127.0.0.1:1")
	require.NoError(t, err)
	_, err = c.Report(t.Context())
	require.ErrorContains(t, err, "debug endpoint 127.0.0.1:1:")
	require.True(t, endpoint.IsRefused(err), "%v", err)
	_, err = NewClient("192.0.2.1:80")
	require.ErrorContains(t, err, "not a loopback address")
}
