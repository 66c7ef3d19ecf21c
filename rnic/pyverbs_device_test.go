package rnic

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// The tests in files pyverbs_*_test.go follow those of rdma-core's pyverbs;
// docs/pyverbs-tests.md has the list.

func TestOpenDevice(t *testing.T) {
	a, b := newEnd(t, Options{}), newEnd(t, Options{Name: "left"})
	require.Regexp(t, `^softrnic\d+$`, a.dev.Name())
	require.Equal(t, "left", b.dev.Name())
	require.NotEqual(t, a.dev.Addr(), b.dev.Addr(), "each has an address of its own")
	require.NotEqual(t, a.dev.QueryDevice().NodeGUID, b.dev.QueryDevice().NodeGUID)
}

func TestQueryDevice(t *testing.T) {
	attr := newEnd(t, Options{}).dev.QueryDevice()
	require.NotEmpty(t, attr.FWVer)
	require.NotZero(t, attr.NodeGUID)
	require.NotZero(t, attr.SysImageGUID)
	require.NotZero(t, attr.VendorID)
	require.Greater(t, attr.MaxMRSize, uint64(4096))
	for name, n := range map[string]int{
		"MaxQP": attr.MaxQP, "MaxQPWR": attr.MaxQPWR, "MaxSGE": attr.MaxSGE, "MaxSGERd": attr.MaxSGERd, "MaxCQ": attr.MaxCQ,
		"MaxCQE": attr.MaxCQE, "MaxMR": attr.MaxMR, "MaxMW": attr.MaxMW, "MaxPD": attr.MaxPD, "MaxAH": attr.MaxAH,
		"MaxSRQ": attr.MaxSRQ, "MaxSRQWR": attr.MaxSRQWR, "MaxSRQSGE": attr.MaxSRQSGE, "MaxQPRdAtom": attr.MaxQPRdAtom,
		"MaxQPInitRdAtom": attr.MaxQPInitRdAtom, "MaxInlineData": attr.MaxInlineData, "MaxPKeys": attr.MaxPKeys,
	} {
		require.Positive(t, n, name)
	}
	require.Equal(t, 1, attr.PhysPortCnt)
	require.Equal(t, verbs.AtomicGlob, attr.AtomicCap)
}

func TestQueryPort(t *testing.T) {
	e := newEnd(t, Options{})
	port, err := e.dev.QueryPort(1)
	require.NoError(t, err)
	require.Equal(t, verbs.PortActive, port.State)
	require.Equal(t, verbs.MTU4096, port.MaxMTU)
	require.NotZero(t, port.ActiveMTU.Bytes())
	require.LessOrEqual(t, port.ActiveMTU, port.MaxMTU)
	require.Greater(t, port.MaxMsgSize, uint32(0x1000))
	require.Equal(t, "Ethernet", port.LinkLayer)
	require.Equal(t, e.dev.Addr().Port(), port.UDPPort)
	require.Positive(t, port.RecvBuffer)
	require.Equal(t, []int{1, 1}, []int{port.GIDTableLen, port.PKeyTableLen})

	require.NoError(t, e.dev.Close())
	port, err = e.dev.QueryPort(1)
	require.NoError(t, err)
	require.Equal(t, verbs.PortDown, port.State)
}

func TestQueryPortBadFlow(t *testing.T) {
	dev := newEnd(t, Options{}).dev
	for _, port := range []int{-1, 0, 2, 256} {
		_, err := dev.QueryPort(port)
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, fmt.Sprintf("port %d does not exist; the adapter has port 1", port))
	}
}

func TestQueryGID(t *testing.T) {
	e := newEnd(t, Options{})
	entry, err := e.dev.QueryGID(1, 0)
	require.NoError(t, err)
	require.Equal(t, verbs.GIDEntry{GID: verbs.GIDFromAddr(e.dev.Addr().Addr()), Port: 1, Type: verbs.GIDRoCEv2}, entry)

	t.Run("IPv6", func(t *testing.T) {
		needIPv6(t)
		e := newEnd(t, Options{Addr: netip.MustParseAddrPort("[::1]:0"), AnyPort: true})
		entry, err := e.dev.QueryGID(1, 0)
		require.NoError(t, err)
		require.Equal(t, "::1", entry.GID.Addr().String())
	})
}

func TestQueryGIDBadFlow(t *testing.T) {
	dev := newEnd(t, Options{}).dev
	for _, c := range [][2]int{{0, 0}, {2, 0}, {1, -1}, {1, 1}, {1, 255}} {
		_, err := dev.QueryGID(c[0], c[1])
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, "want port 1, index 0")
	}
}

// TestPKeyIndex checks that the only partition key is 0xffff at index 0.
func TestPKeyIndex(t *testing.T) {
	e := newEnd(t, Options{})
	attr := verbs.QPAttr{State: verbs.StateInit, PortNum: 1, PKeyIndex: 1}
	mask := verbs.AttrState | verbs.AttrPort | verbs.AttrPKeyIndex | verbs.AttrAccessFlags
	err := e.qp.Modify(attr, mask)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	require.ErrorContains(t, err, "P_Key index 1 does not exist")
	attr.PKeyIndex = 0
	require.NoError(t, e.qp.Modify(attr, mask))
}

func TestAllocPD(t *testing.T) {
	dev := newEnd(t, Options{}).dev
	pd, err := dev.AllocPD()
	require.NoError(t, err)
	_, err = pd.RegMR(make([]byte, 1), 0)
	require.NoError(t, err)
	require.ErrorIs(t, pd.Close(), verbs.ErrBusy)
}

func TestMultiplePDs(t *testing.T) {
	dev := newEnd(t, Options{}).dev
	for range 200 {
		pd, err := dev.AllocPD()
		require.NoError(t, err)
		require.NoError(t, pd.Close())
	}
	require.Equal(t, 1, dev.Stats().PDs)
}

func TestDestroyPDTwice(t *testing.T) {
	pd, err := newEnd(t, Options{}).dev.AllocPD()
	require.NoError(t, err)
	require.NoError(t, pd.Close())
	require.NoError(t, pd.Close())
}
