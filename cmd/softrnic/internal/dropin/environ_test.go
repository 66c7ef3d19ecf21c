package dropin_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/dropin"
)

// installRDMA makes the dynamic linker's cache of a test contain libraries that exist.
func installRDMA(t *testing.T, names ...string) {
	t.Helper()
	dir := t.TempDir()
	cache := "glibc-ld.so.cache1.1\x00"
	for _, name := range names {
		cache += name + "\x00" + writeFile(t, filepath.Join(dir, name), nil) + "\x00"
	}
	dropin.SetLinkerCache(t, writeFile(t, filepath.Join(dir, "ld.so.cache"), []byte(cache)))
}

// TestChanges checks the variables for a machine with rdma-core.
func TestChanges(t *testing.T) {
	installRDMA(t, dropin.RDMALibraries...)
	l := newLibraries(t)
	environ := []string{"LD_PRELOAD=/lib/librspreload.so:/old/libsoftrnic-preload.so libx.so", "HOME=/"}
	s := dropin.Settings{Addr: "192.0.2.1", Impair: "loss 1%", Devices: 2, Capture: "/tmp/x.pcapng", Explain: true}
	want := []dropin.Change{
		{Name: "LD_PRELOAD", Value: l.Preload() + ":/lib/librspreload.so:libx.so"},
		{Name: "SOFTRNIC_ADDR", Value: "192.0.2.1"},
		{Name: "SOFTRNIC_IMPAIR", Value: "loss 1%"},
		{Name: "SOFTRNIC_CAPTURE", Value: "/tmp/x.pcapng"},
		{Name: "SOFTRNIC_DEVICES", Value: "2"},
		{Name: "SOFTRNIC_EXPLAIN", Value: "1"},
		{Name: "UCX_UD_VERBS_ETH_DGID_CHECK", Value: "n"},
	}
	require.Equal(t, want, l.Changes(environ, "", s))
	after := l.Environ(environ, "", s)
	require.Contains(t, after, "HOME=/")
	require.NotContains(t, after, environ[0])
	require.Empty(t, l.Changes(after, "", s), "of a shell that has them")
}

// TestStandIns checks that only a library that is missing gets a stand-in.
func TestStandIns(t *testing.T) {
	l := newLibraries(t)
	path := func(environ ...string) string {
		for _, c := range l.Changes(environ, "", dropin.Settings{}) {
			if c.Name == "LD_LIBRARY_PATH" {
				return c.Value
			}
		}
		return ""
	}
	verbs := l.StandInDir("libibverbs.so.1")
	installRDMA(t)
	require.Equal(t, verbs, path())
	require.Equal(t, verbs+":/opt/lib", path("LD_LIBRARY_PATH=/opt/lib:"+verbs))
	own := t.TempDir()
	writeFile(t, filepath.Join(own, "libibverbs.so.1"), nil)
	require.NotContains(t, path("LD_LIBRARY_PATH="+own), verbs)
	installRDMA(t, "libibverbs.so.1")
	require.Empty(t, path())
}
