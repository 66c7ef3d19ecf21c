package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

// TestReregister checks that the key stays while access, domain and memory change.
func TestReregister(t *testing.T) {
	host := newPDTestHost()
	pd, other := newPD(host), newPD(host)
	before, after := aligned(64), aligned(128)
	old := mustReg(t, pd, before, verbs.AccessLocalWrite)
	_, fault := (*pdMemory)(pd).Remote(old.key, realAddr(before), 8, verbs.AccessRemoteWrite, 1)
	require.Equal(t, qp.FaultAccess, fault)

	mr, err := old.Reregister(pd, before, realAddr(before), verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	require.NoError(t, err)
	require.Equal(t, old.LKey(), mr.LKey())
	mem, fault := (*pdMemory)(pd).Remote(mr.RKey(), realAddr(before), 8, verbs.AccessRemoteWrite, 1)
	require.Equal(t, qp.NoFault, fault)
	require.Same(t, &before[0], &mem[0])

	mr, err = mr.(*memoryRegion).Reregister(other, after, 0x1000, verbs.AccessLocalWrite)
	require.NoError(t, err)
	_, fault = (*pdMemory)(pd).Local(mr.LKey(), 0x1000, 128, true)
	require.Equal(t, qp.FaultDomain, fault)
	mem, fault = (*pdMemory)(other).Local(mr.LKey(), 0x1000, 128, true)
	require.Equal(t, qp.NoFault, fault)
	require.Same(t, &after[0], &mem[0])
	require.NoError(t, pd.Close(), "the region is not of this domain any more")
	require.ErrorIs(t, other.Close(), verbs.ErrBusy)
	require.NoError(t, old.Close(), "replaced")
	require.NoError(t, mr.Close())
	require.NoError(t, other.Close())
}

func TestReregisterMisuse(t *testing.T) {
	host := newPDTestHost()
	pd := newPD(host)
	buf := aligned(64)
	mr := mustReg(t, pd, buf, verbs.AccessLocalWrite|verbs.AccessMWBind)
	_, err := mr.Reregister(newPD(newPDTestHost()), buf, 0, 0)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	_, err = mr.Reregister(pd, nil, 0, 0)
	require.ErrorIs(t, err, verbs.ErrInvalid)
	_, err = mr.Reregister(pd, buf, 0, verbs.AccessRemoteWrite)
	require.ErrorIs(t, err, verbs.ErrInvalid)

	w, err := pd.AllocMW()
	require.NoError(t, err)
	bind := verbs.BindMW{MW: w, MR: mr, RKey: verbs.IncRKey(w.RKey()), Addr: mr.Addr(), Length: 8, Access: verbs.AccessRemoteRead}
	require.Equal(t, qp.NoFault, (*pdMemory)(pd).Bind(&bind, 1))
	_, err = mr.Reregister(pd, buf, mr.Addr(), verbs.AccessLocalWrite)
	require.ErrorIs(t, err, verbs.ErrBusy)
	require.NoError(t, w.Close())

	require.NoError(t, mr.Close())
	_, err = mr.Reregister(pd, buf, mr.Addr(), verbs.AccessLocalWrite)
	require.ErrorIs(t, err, verbs.ErrClosed)
	require.NoError(t, pd.Close())
}

// TestRegMROnDemand checks that memory of on-demand paging need not exist yet.
func TestRegMROnDemand(t *testing.T) {
	pd := newPD(newPDTestHost())
	buf := aligned(64)
	mr := mustReg(t, pd, buf, verbs.AccessLocalWrite|verbs.AccessOnDemand)
	require.Equal(t, verbs.AccessLocalWrite|verbs.AccessOnDemand, mr.Access())
	require.NoError(t, mr.Close())
}
