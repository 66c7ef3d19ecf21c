package verbstest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

func testQueryDevice(t *T) {
	attr := newEnd(t).dev.QueryDevice()
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
	require.NotEqual(t, verbs.AtomicNone, attr.AtomicCap)
}

func testQueryPort(t *T) {
	e := newEnd(t)
	port, err := e.dev.QueryPort(1)
	require.NoError(t, err)
	require.Equal(t, verbs.PortActive, port.State)
	require.Equal(t, verbs.MTU4096, port.MaxMTU)
	require.NotZero(t, port.ActiveMTU.Bytes())
	require.LessOrEqual(t, port.ActiveMTU, port.MaxMTU)
	require.Greater(t, port.MaxMsgSize, uint32(0x1000))
	require.Equal(t, "Ethernet", port.LinkLayer)
	require.Equal(t, t.device.Addr(e.dev).Port(), port.UDPPort)
	require.Positive(t, port.GIDTableLen)
	require.Positive(t, port.PKeyTableLen)
}

func testQueryPortBadFlow(t *T) {
	dev := newEnd(t).dev
	for _, port := range []int{-1, 0, 2, 256} {
		_, err := dev.QueryPort(port)
		require.ErrorIs(t, err, verbs.ErrInvalid)
		t.explains(err, fmt.Sprintf("port %d does not exist; the adapter has port 1", port))
	}
}

func testQueryGID(t *T) {
	e := newEnd(t)
	entry, err := e.dev.QueryGID(1, 0)
	require.NoError(t, err)
	require.Equal(t, verbs.GIDEntry{GID: verbs.GIDFromAddr(t.device.Addr(e.dev).Addr()), Port: 1, Type: verbs.GIDRoCEv2}, entry)
}

func testQueryGIDBadFlow(t *T) {
	dev := newEnd(t).dev
	port, err := dev.QueryPort(1)
	require.NoError(t, err)
	for _, c := range [][2]int{{0, 0}, {2, 0}, {1, -1}, {1, port.GIDTableLen}, {1, port.GIDTableLen + 254}} {
		_, err := dev.QueryGID(c[0], c[1])
		require.ErrorIs(t, err, verbs.ErrInvalid)
		t.explains(err, "want port 1, index 0")
	}
}

// testPKeyIndex checks that the only partition key is 0xffff at index 0.
func testPKeyIndex(t *T) {
	e := newEnd(t)
	attr := verbs.QPAttr{State: verbs.StateInit, PortNum: 1, PKeyIndex: 1}
	mask := verbs.AttrState | verbs.AttrPort | verbs.AttrPKeyIndex | verbs.AttrAccessFlags
	err := e.qp.Modify(attr, mask)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	t.explains(err, "P_Key index 1 does not exist")
	attr.PKeyIndex = 0
	require.NoError(t, e.qp.Modify(attr, mask))
}

func testAllocPD(t *T) {
	dev := newEnd(t).dev
	pd, err := dev.AllocPD()
	require.NoError(t, err)
	_, err = pd.RegMR(make([]byte, 1), 0)
	require.NoError(t, err)
	require.ErrorIs(t, pd.Close(), verbs.ErrBusy)
}

func testMultiplePDs(t *T) {
	dev := newEnd(t).dev
	for range 200 {
		pd, err := dev.AllocPD()
		require.NoError(t, err)
		require.NoError(t, pd.Close())
	}
	t.count(dev, "pd", 1)
}

func testDestroyPDTwice(t *T) {
	pd, err := newEnd(t).dev.AllocPD()
	require.NoError(t, err)
	require.NoError(t, pd.Close())
	require.NoError(t, pd.Close())
}
