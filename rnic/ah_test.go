package rnic

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

func gid(s string) verbs.GID { return verbs.GIDFromAddr(netip.MustParseAddr(s)) }

func TestCreateAH(t *testing.T) {
	host := newPDTestHost()
	pd := newPD(host)
	for _, c := range []struct {
		own  string
		attr verbs.AHAttr
		dst  string
	}{
		{"10.0.0.1", verbs.AHAttr{DGID: gid("10.0.0.2")}, "10.0.0.2:4791"},
		{"10.0.0.1", verbs.AHAttr{DGID: gid("10.0.0.2"), UDPPort: 5000, PortNum: 1, TrafficClass: 0x42}, "10.0.0.2:5000"},
		{"10.0.0.1", verbs.AHAttr{DGID: gid("239.1.2.3")}, "239.1.2.3:4791"},
		{"fd00::1", verbs.AHAttr{DGID: gid("fd00::2"), FlowLabel: 0xfffff, SL: 15}, "[fd00::2]:4791"},
		{"fd00::1", verbs.AHAttr{DGID: gid("ff0e::1:2")}, "[ff0e::1:2]:4791"},
	} {
		host.gid = gid(c.own)
		made, err := pd.CreateAH(c.attr)
		require.NoError(t, err)
		ah := made.(*addressHandle)
		require.Equal(t, netip.MustParseAddrPort(c.dst), ah.path.Dst)
		require.Equal(t, c.attr.TrafficClass, ah.path.TrafficClass)

		attr := ah.Attr()
		require.Equal(t, c.attr.DGID, attr.DGID)
		require.Equal(t, ah.path.Dst.Port(), attr.UDPPort)
		require.EqualValues(t, 1, attr.PortNum)
		require.EqualValues(t, 64, attr.HopLimit)

		require.NoError(t, ah.Close())
		require.NoError(t, ah.Close())
		require.Equal(t, netip.MustParseAddrPort(c.dst), ah.path.Dst, "sends in flight still use it")
	}
	require.NoError(t, pd.Close())
}

func TestCreateAHMisuse(t *testing.T) {
	host := newPDTestHost()
	pd := newPD(host)
	for _, c := range []struct {
		own  string
		attr verbs.AHAttr
		says string
	}{
		{"10.0.0.1", verbs.AHAttr{}, "DGID"},
		{"10.0.0.1", verbs.AHAttr{DGID: gid("0.0.0.0")}, "DGID is not set"},
		{"fd00::1", verbs.AHAttr{}, "DGID is not set"},
		{"10.0.0.1", verbs.AHAttr{DGID: gid("fd00::2")},
			"DGID fd00::2 is an IPv6 address and the local one, GID 0, is 10.0.0.1; open the device on an IPv6 address or use the peer's IPv4 one"},
		{"fd00::1", verbs.AHAttr{DGID: gid("10.0.0.2")}, "10.0.0.2 is an IPv4 address"},
		{"10.0.0.1", verbs.AHAttr{DGID: gid("ff0e::1")}, "ff0e::1 is an IPv6 address"},
		{"10.0.0.1", verbs.AHAttr{DGID: gid("10.0.0.2"), PortNum: 2}, "port 1"},
		{"10.0.0.1", verbs.AHAttr{DGID: gid("10.0.0.2"), SGIDIndex: 1}, "GID 0"},
	} {
		host.gid = gid(c.own)
		ah, err := pd.CreateAH(c.attr)
		require.Nil(t, ah)
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, "create AH")
		require.ErrorContains(t, err, c.says)
	}
	require.NoError(t, pd.Close(), "a failed call leaves nothing behind")
}
