package rnicdebug_test

import (
	"os"
	"strings"
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

func TestFromEnvironment(t *testing.T) {
	dev := open(t)
	dir, err := os.MkdirTemp("", "s") // t.TempDir is too long for a socket on macOS
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	for _, none := range []string{"", "off"} {
		t.Setenv(rnicdebug.EnvVar, none)
		s, err := rnicdebug.FromEnvironment(dev)
		require.NoError(t, err)
		require.Nil(t, s)
		require.Empty(t, s.Addr())
		require.NoError(t, s.Close(), "none can be closed, too")
	}
	for env, prefix := range map[string]string{"auto": "unix:/", "127.0.0.1:0": "127.0.0.1:"} {
		t.Setenv(rnicdebug.EnvVar, env)
		s, err := rnicdebug.FromEnvironment(dev)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(s.Addr(), prefix), s.Addr())
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
	}
	t.Setenv(rnicdebug.EnvVar, "0.0.0.0:9479")
	_, err = rnicdebug.FromEnvironment(dev)
	require.ErrorContains(t, err, "SOFTRNIC_DEBUG: debug endpoint")
	require.ErrorContains(t, err, "is not a loopback address")
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
	require.Equal(t, "Packets sent, repeated ones and acknowledgements too.", names["softrnic_sent_pkts_total"])
}
