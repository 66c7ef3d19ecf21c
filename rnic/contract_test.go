package rnic

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/ifwatch"
	"github.com/softrnic/softrnic/internal/verbstest"
	"github.com/softrnic/softrnic/verbs"
)

// TestContract runs the tests of the contract of package verbs.
func TestContract(t *testing.T) {
	verbstest.Run(t, verbstest.Device{
		Kind: "softrnic", Explains: true, Synchronous: true, SameHeaders: true,
		Open: func(t testing.TB) verbs.Device {
			d, err := Open(Options{})
			require.NoError(t, err)
			return d
		},
		Addr: func(d verbs.Device) netip.AddrPort { return d.(*Device).Addr() },
		Count: func(d verbs.Device, kind string) int {
			for _, o := range d.(*Device).Inspect().Objects {
				if o.Kind == kind {
					return o.InUse
				}
			}
			panic("no objects of kind " + kind)
		},
		Counter: func(d verbs.Device, name string) uint64 {
			for n, value := range d.(*Device).Stats().Counters.All() {
				if n == name {
					return value
				}
			}
			panic("no counter " + name)
		},
		Drops: func(d verbs.Device, reason string) uint64 { return d.(*Device).Stats().Drops[reason] },
	})
}

func TestOpenDevice(t *testing.T) {
	a, b := newEnd(t, Options{}), newEnd(t, Options{Name: "left"})
	require.Regexp(t, `^softrnic\d+$`, a.dev.Name())
	require.Equal(t, "left", b.dev.Name())
	require.NotEqual(t, a.dev.Addr(), b.dev.Addr(), "each has an address of its own")
	require.NotEqual(t, a.dev.QueryDevice().NodeGUID, b.dev.QueryDevice().NodeGUID)
	require.Equal(t, verbs.AtomicGlob, a.dev.QueryDevice().AtomicCap)
}

// TestPort checks the attributes of the port, which is down when the device is closed.
func TestPort(t *testing.T) {
	e := newEnd(t, Options{})
	port, err := e.dev.QueryPort(1)
	require.NoError(t, err)
	require.Positive(t, port.RecvBuffer)
	require.True(t, port.Selective)
	require.Equal(t, []int{1, 1}, []int{port.GIDTableLen, port.PKeyTableLen})

	require.NoError(t, e.dev.Close())
	port, err = e.dev.QueryPort(1)
	require.NoError(t, err)
	require.Equal(t, verbs.PortDown, port.State)
}

func TestGIDOfIPv6(t *testing.T) {
	needIPv6(t)
	e := newEnd(t, Options{Addr: netip.MustParseAddrPort("[::1]:0"), AnyPort: true})
	entry, err := e.dev.QueryGID(1, 0)
	require.NoError(t, err)
	require.Equal(t, "::1", entry.GID.Addr().String())
}

// TestModifyQPMTULimit checks that a larger path MTU than that of the interface is refused.
func TestModifyQPMTULimit(t *testing.T) {
	e := newEnd(t, Options{})
	e.dev.port.state.Store(&ifwatch.State{HasAddr: true, Up: true, MTU: 1500})
	require.NoError(t, verbs.ToInit(e.qp, 0))
	err := e.qp.Modify(verbs.QPAttr{State: verbs.StateRTR, PathMTU: verbs.MTU2048}, verbs.AttrState|verbs.AttrPathMTU)
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.ErrorContains(t, err, "path MTU 2048, the port's active MTU is 1024")
}
