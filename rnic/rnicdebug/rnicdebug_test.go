package rnicdebug_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/rnic/rnicdebug"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *rnic.Device {
	t.Helper()
	dev, err := rnic.Open(rnic.Options{Name: "nic"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// TestMetrics checks that the endpoint of a program that imports the package has metrics.
func TestMetrics(t *testing.T) {
	dev := open(t)
	require.NoError(t, dev.ServeDebug("127.0.0.1:0"))
	res, err := http.Get("http://" + dev.DebugAddr() + "/metrics")
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), `softrnic_device_info{addr="`+dev.Addr().String())
	http.DefaultClient.CloseIdleConnections()
}

func TestNewCollector(t *testing.T) {
	dev := open(t)
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(rnicdebug.NewCollector(dev)))
	families, err := reg.Gather()
	require.NoError(t, err)
	names := map[string]string{}
	for _, f := range families {
		names[f.GetName()] = f.GetHelp()
		for _, l := range f.Metric[0].Label {
			if l.GetName() == "device" {
				require.Equal(t, "nic", l.GetValue(), f.GetName())
			}
		}
	}
	require.Equal(t, "Packets sent, with retransmissions and acknowledgements.", names["softrnic_sent_pkts_total"])
}
