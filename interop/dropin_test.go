//go:build interop && linux

package interop

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
)

// preloaded returns the command of an unmodified program with the drop-in library.
func preloaded(library string, addr netip.Addr, args ...string) []string {
	return append([]string{"env", "LD_PRELOAD=" + library, "SOFTRNIC_ADDR=" + addr.String()}, args...)
}

// buildDropin builds the drop-in library, or skips the test where that is not possible.
func buildDropin(t *testing.T) string {
	t.Helper()
	for _, file := range []string{"/usr/include/infiniband/verbs.h", "/usr/include/rdma/rdma_cma.h"} {
		if _, err := os.Stat(file); err != nil {
			t.Skip("not installed: libibverbs-dev and librdmacm-dev: ", err)
		}
	}
	for _, program := range []string{"gcc", "ib_send_bw", "rping", "ibv_rc_pingpong"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("not installed: ", program)
		}
	}
	dir := t.TempDir()
	out, err := exec.Command("../dropin/build.sh", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return filepath.Join(dir, "libsoftrnic-preload.so")
}

// TestDropin runs unmodified programs on both sides, in both roles: with the drop-in library here,
// and on rxe in the guest.
func TestDropin(t *testing.T) {
	g := lab.Need(t)
	library := buildDropin(t)
	f := families[0]
	names := []string{"ibv_rc_pingpong", "ibv_ud_pingpong", "ib_send_bw", "ib_send_bw -c UD", "ib_write_bw -q 3", "ib_read_lat", "ib_atomic_bw", "ib_send_lat -R"}
	for _, p := range programs() {
		if !isWide() && !slices.Contains(names, p.name) {
			continue
		}
		for _, softHosts := range []bool{true, false} {
			size := p.chosenSizes(1024, false, 0)[0]
			r := run{program: p, softHosts: softHosts, f: f, mtu: 1024, size: size, iters: itersFor(size), preload: library}
			cell(t, dropinT, "", []string{p.name, role(softHosts)}, r.String(), func(t *testing.T) {
				require.NoError(t, r.runBoth(t, g))
			})
		}
	}
	for _, i := range []int{0, 2, 6} { // rping, ucmatose, udaddy
		p := cmPrograms[i]
		for _, softHosts := range []bool{true, false} {
			cell(t, dropinT, "", []string{p.name, role(softHosts)}, p.name+" "+role(softHosts), func(t *testing.T) {
				require.NoError(t, p.runBoth(t, g, softHosts, f, "", library))
			})
		}
	}
	cell(t, dropinT, "", []string{"ib_send_bw and rping at once", "server"}, "shared address", func(t *testing.T) {
		i := slices.IndexFunc(programs(), func(p *program) bool { return p.name == "ib_send_bw" })
		r := run{program: programs()[i], softHosts: true, f: f, mtu: 1024, size: 64 << 10, iters: 50, preload: library}
		ended := make(chan error, 1)
		go func() { ended <- r.runBoth(t, g) }()
		require.NoError(t, cmPrograms[0].runBoth(t, g, true, f, "", library))
		require.NoError(t, <-ended)
	})
}

func role(softHosts bool) string {
	if softHosts {
		return "server"
	}
	return "client"
}
