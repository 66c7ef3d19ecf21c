package verbs_test

import (
	"go/constant"
	"go/types"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// enumValue is a value of any enumeration.
type enumValue interface {
	String() string
}

// enum is an enumeration of the package: how to convert a value, and the prefix of its constants in
// libibverbs.
type enum struct {
	prefix string
	flags  bool
	at     func(v uint32) enumValue
}

var enums = map[string]enum{
	"AccessFlags":      {"IBV_ACCESS_", true, func(v uint32) enumValue { return verbs.AccessFlags(v) }},
	"AtomicCap":        {"IBV_", false, func(v uint32) enumValue { return verbs.AtomicCap(v) }},
	"EventType":        {"IBV_EVENT_", false, func(v uint32) enumValue { return verbs.EventType(v) }},
	"FlushPlacement":   {"IBV_FLUSH_", true, func(v uint32) enumValue { return verbs.FlushPlacement(v) }},
	"FlushSelectivity": {"IBV_FLUSH_", false, func(v uint32) enumValue { return verbs.FlushSelectivity(v) }},
	"GIDType":          {"IBV_GID_TYPE_", false, func(v uint32) enumValue { return verbs.GIDType(v) }},
	"MTU":              {"IBV_MTU_", false, func(v uint32) enumValue { return verbs.MTU(v) }},
	"PortState":        {"IBV_", false, func(v uint32) enumValue { return verbs.PortState(v) }},
	"QPAttrMask":       {"IBV_QP_", true, func(v uint32) enumValue { return verbs.QPAttrMask(v) }},
	"QPState":          {"IBV_QPS_", false, func(v uint32) enumValue { return verbs.QPState(v) }},
	"QPType":           {"IBV_QPT_", false, func(v uint32) enumValue { return verbs.QPType(v) }},
	"SRQAttrMask":      {"IBV_SRQ_", true, func(v uint32) enumValue { return verbs.SRQAttrMask(v) }},
	"SendFlags":        {"IBV_SEND_", true, func(v uint32) enumValue { return verbs.SendFlags(v) }},
	"WCFlags":          {"IBV_WC_", true, func(v uint32) enumValue { return verbs.WCFlags(v) }},
	"WCOpcode":         {"IBV_WC_", false, func(v uint32) enumValue { return verbs.WCOpcode(v) }},
	"WCStatus":         {"IBV_WC_", false, func(v uint32) enumValue { return verbs.WCStatus(v) }},
	"WROpcode":         {"IBV_WR_", false, func(v uint32) enumValue { return verbs.WROpcode(v) }},
}

// declared lists the values of the constants of each type in the source, except constants that join
// flags.
func declared(t *testing.T) map[string]map[uint32]bool {
	t.Helper()
	scope := checkedPackage(t).Scope()
	values := map[string]map[uint32]bool{}
	for _, name := range scope.Names() {
		c, ok := scope.Lookup(name).(*types.Const)
		if !ok {
			continue
		}
		named, ok := c.Type().(*types.Named)
		if !ok {
			continue
		}
		typ := named.Obj().Name()
		v, exact := constant.Uint64Val(c.Val())
		require.True(t, exact)
		if enums[typ].flags && bits.OnesCount64(v) != 1 {
			continue
		}
		if values[typ] == nil {
			values[typ] = map[uint32]bool{}
		}
		values[typ][uint32(v)] = true
	}
	require.NotEmpty(t, values)
	return values
}

// candidates returns the possible values of an enumeration.
func (e enum) candidates() []uint32 {
	var vs []uint32
	for i := range uint32(256) {
		if !e.flags {
			vs = append(vs, i)
		} else if i < 32 && e.at(1<<i).String() != "0" { // it fits the type
			vs = append(vs, 1<<i)
		}
	}
	return vs
}

// TestEveryValueHasNameAndMeaning checks that declared values have the name of the constant of C
// with the same value, and a description of their own, and that others are described as unknown.
func TestEveryValueHasNameAndMeaning(t *testing.T) {
	g, all := readGolden(t), declared(t)
	for typ := range all {
		require.Contains(t, enums, typ, "a new enumeration belongs into this test")
	}
	for typ, e := range enums {
		names, meanings := map[string]bool{}, map[string]bool{}
		for _, v := range e.candidates() {
			name, meaning := e.at(v).String(), verbs.Describe(e.at(v))
			unknown := strings.HasPrefix(name, typ+"(")
			require.Equal(t, all[typ][v], !unknown, "%s %d is called %s", typ, v, name)
			require.NotEmpty(t, meaning)
			require.False(t, names[name], "two of %s are called %s", typ, name)
			require.False(t, meanings[meaning], "two of %s mean %q", typ, meaning)
			names[name], meanings[meaning] = true, true
			if unknown {
				continue
			}
			switch e.at(v) {
			case verbs.GSI: // IB_QPT_GSI of the kernel
			case verbs.SendDelayAck: // softrnic's own
			case verbs.GIDRoCEv2:
				require.Equal(t, "RoCE v2", name)
			default:
				require.Contains(t, g.value, e.prefix+name)
				require.Equal(t, g.value[e.prefix+name], int64(v), "%s%s", e.prefix, name)
				require.NotEqual(t, name, meaning)
			}
		}
	}
}

func TestUnknownValues(t *testing.T) {
	require.Equal(t, "WCStatus(99)", verbs.WCStatus(99).String())
	require.Equal(t, "WCOpcode(7)", verbs.WCOpcode(7).String(), "a gap")
	require.Equal(t, "QPType(0)", verbs.QPType(0).String())
	require.Equal(t, "MTU(0)", verbs.MTU(0).String())
	require.Equal(t, "EventType(255)", verbs.EventType(255).String())
	require.Contains(t, verbs.Describe(verbs.WCStatus(99)), "WCStatus(99)")
}

func TestFlagsJoin(t *testing.T) {
	require.Equal(t, "0", verbs.AccessFlags(0).String())
	require.Equal(t, "REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC", verbs.AccessRemote.String())
	require.Equal(t, "peers may write; peers may read; peers may run atomics", verbs.Describe(verbs.AccessRemote))
	require.Equal(t, "STATE|PKEY_INDEX|PORT", (verbs.AttrState | verbs.AttrPKeyIndex | verbs.AttrPort).String())
	require.Equal(t, "FENCE|SendFlags(0x40)", (verbs.SendFence | 0x40).String())
	require.Equal(t, "QPAttrMask(0x4000)", verbs.QPAttrMask(1<<14).String(), "a gap")
	require.Equal(t, "QPAttrMask(0x80004000)", verbs.QPAttrMask(1<<31|1<<14).String())
}

func TestNamesDoNotAllocate(t *testing.T) {
	for typ, values := range declared(t) {
		for v := range values {
			e := enums[typ].at(v)
			allocs := testing.AllocsPerRun(10, func() { _, _ = e.String(), verbs.Describe(e) })
			require.Zero(t, allocs, "%s %v", typ, e)
		}
	}
}
