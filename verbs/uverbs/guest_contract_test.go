//go:build interop && linux

package uverbs

import (
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/verbstest"
	"github.com/softrnic/softrnic/verbs"
)

// TestContract runs the tests of the contract of package verbs, which those of rnic run, too.
func TestContract(t *testing.T) {
	verbstest.Run(t, verbstest.Device{
		Kind: "rxe",
		Open: func(t testing.TB) verbs.Device {
			d, err := Open(Options{Name: deviceName()})
			require.NoError(t, err)
			return d
		},
		Addr: func(d verbs.Device) netip.AddrPort {
			entry, err := d.QueryGID(1, 0)
			if err != nil {
				panic(err)
			}
			return netip.AddrPortFrom(entry.GID.Addr(), rocePort)
		},
		Counter: func(d verbs.Device, name string) uint64 {
			text, err := os.ReadFile("/sys/class/infiniband/" + d.Name() + "/ports/1/hw_counters/" + name)
			if err != nil {
				panic(err)
			}
			n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
			if err != nil {
				panic(err)
			}
			return n
		},
	})
}
