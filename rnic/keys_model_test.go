package rnic

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

// memoryModel is a simple model of memory: lists of all regions and windows ever created, with
// linear search.
type memoryModel struct {
	regions []*modelRegion
	windows []*modelWindow
	keys    []uint32 // all keys ever used
}

type modelRegion struct {
	mr   *memoryRegion
	pd   *protectionDomain
	dead bool
}

type modelWindow struct {
	mw        *memoryWindow
	pd        *protectionDomain
	dead      bool
	key       uint32
	to        *modelRegion // nil if unbound
	qpn       uint32
	off, size int // of the binding, relative to the region
	access    verbs.AccessFlags
}

func (m *memoryModel) region(key uint32) *modelRegion {
	for _, r := range m.regions {
		if !r.dead && r.mr.LKey() == key {
			return r
		}
	}
	return nil
}

func (m *memoryModel) window(key uint32) *modelWindow {
	for _, w := range m.windows {
		if !w.dead && w.key == key {
			return w
		}
	}
	return nil
}

func (m *memoryModel) bindings(r *modelRegion) (n int) {
	for _, w := range m.windows {
		if w.to == r {
			n++
		}
	}
	return n
}

// indexWithin searches for addr byte by byte and returns its index, or -1 if the range does not
// fit.
func indexWithin(base uint64, mem []byte, addr uint64, n uint32) int {
	for i := 0; i <= len(mem); i++ {
		if base+uint64(i) == addr && uint64(i)+uint64(n) <= uint64(len(mem)) {
			return i
		}
	}
	return -1
}

func (m *memoryModel) findLocal(pd *protectionDomain, key uint32, addr uint64, n uint32, write bool) ([]byte, qp.Fault) {
	r := m.region(key)
	if r == nil {
		return nil, qp.FaultKey
	}
	if r.pd != pd {
		return nil, qp.FaultDomain
	}
	if write && r.mr.Access()&verbs.AccessLocalWrite == 0 {
		return nil, qp.FaultAccess
	}
	i := indexWithin(r.mr.Addr(), r.mr.Bytes(), addr, n)
	if i < 0 {
		return nil, qp.FaultBounds
	}
	return r.mr.Bytes()[i : i+int(n)], qp.NoFault
}

func (m *memoryModel) remote(pd *protectionDomain, key uint32, addr uint64, n uint32, need verbs.AccessFlags, qpn uint32) ([]byte, qp.Fault) {
	var owner *protectionDomain
	var granted verbs.AccessFlags
	var base uint64
	var mem []byte
	if r := m.region(key); r != nil {
		owner, granted, base, mem = r.pd, r.mr.Access(), r.mr.Addr(), r.mr.Bytes()
	}
	w := m.window(key)
	if w != nil {
		owner, granted = w.pd, w.access
	}
	if owner == nil {
		return nil, qp.FaultKey
	}
	if owner != pd {
		return nil, qp.FaultDomain
	}
	if w != nil {
		if w.to == nil {
			return nil, qp.FaultUnbound
		}
		if w.qpn != qpn {
			return nil, qp.FaultQP
		}
		base, mem = w.to.mr.Addr()+uint64(w.off), w.to.mr.Bytes()[w.off:w.off+w.size]
		if granted&verbs.AccessZeroBased != 0 {
			base = 0
		}
	}
	if granted&need != need {
		return nil, qp.FaultAccess
	}
	i := indexWithin(base, mem, addr, n)
	if i < 0 {
		return nil, qp.FaultBounds
	}
	if need&verbs.AccessRemoteAtomic != 0 && (realAddr(mem)+uint64(i))%8 != 0 {
		return nil, qp.FaultMisalign
	}
	return mem[i : i+int(n)], qp.NoFault
}

// TestMemoryAgainstModel registers, binds and closes in any order, with valid and invalid
// arguments, and compares every access with the model.
func TestMemoryAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := newPDTestHost()
		host.keys = newKeyTable(newSource(rapid.Uint64().Draw(t, "seed")))
		pds := []*protectionDomain{newPD(host), newPD(host)}
		m := new(memoryModel)
		// slip is sometimes true: then an argument is drawn at random instead of a valid or likely
		// one.
		slip := func() bool { return rapid.IntRange(0, 9).Draw(t, "slip") == 9 }
		anyPD := func() *protectionDomain { return pds[rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "domain")] }
		anyQPN := func() uint32 { return rapid.SampledFrom([]uint32{1, 1, 1, 2}).Draw(t, "queue pair") }
		anyAccess := func() verbs.AccessFlags {
			if slip() {
				return verbs.AccessFlags(rapid.Uint32Range(0, 63).Draw(t, "access"))
			}
			return rapid.SampledFrom([]verbs.AccessFlags{allAccess, allAccess | verbs.AccessZeroBased}).Draw(t, "access")
		}
		anyKey := func() uint32 {
			switch {
			case len(m.keys) == 0:
				return 0
			case slip():
				return rapid.SampledFrom(m.keys).Draw(t, "key") ^ rapid.SampledFrom([]uint32{0, 1, 1 << 31}).Draw(t, "flip")
			case len(m.windows) > 0 && rapid.Bool().Draw(t, "of a window"):
				return rapid.SampledFrom(m.windows).Draw(t, "window").key
			case len(m.regions) > 0:
				return rapid.SampledFrom(m.regions).Draw(t, "region").mr.LKey()
			}
			return 0
		}
		// anyAddr returns an address in or around some region or window.
		anyAddr := func() uint64 {
			off := uint64(rapid.IntRange(-2, 34).Draw(t, "offset"))
			if len(m.regions) == 0 || rapid.Bool().Draw(t, "from zero") {
				return off
			}
			return realAddr(rapid.SampledFrom(m.regions).Draw(t, "near").mr.Bytes()) + off
		}

		check := func() {
			pd, key, addr, qpn := anyPD(), anyKey(), anyAddr(), anyQPN()
			need := rapid.SampledFrom([]verbs.AccessFlags{verbs.AccessRemoteRead, verbs.AccessRemoteWrite,
				verbs.AccessRemoteAtomic, verbs.AccessRemote, 0}).Draw(t, "need")
			n := rapid.Uint32Range(0, 33).Draw(t, "bytes")
			write := rapid.Bool().Draw(t, "write")
			same := func(wantMem []byte, want qp.Fault, gotMem []byte, got qp.Fault) {
				t.Helper()
				require.Equal(t, want, got, "want %v, got %v", want, got)
				require.Equal(t, len(wantMem), len(gotMem))
				if len(wantMem) > 0 {
					require.Same(t, &wantMem[0], &gotMem[0])
				}
			}
			wantMem, want := m.findLocal(pd, key, addr, n, write)
			gotMem, got := (*pdMemory)(pd).Local(key, addr, n, write)
			same(wantMem, want, gotMem, got)
			wantMem, want = m.remote(pd, key, addr, n, need, qpn)
			gotMem, got = (*pdMemory)(pd).Remote(key, addr, n, need, qpn)
			same(wantMem, want, gotMem, got)
		}

		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {
				for range 4 {
					check()
				}
			},
			"register": func(*rapid.T) {
				pd := anyPD()
				buf := aligned(48)[rapid.SampledFrom([]int{0, 0, 8, 3}).Draw(t, "shift"):][:32]
				mr, err := pd.RegMR(buf, anyAccess())
				if err != nil {
					require.ErrorIs(t, err, verbs.ErrInvalid)
					return
				}
				require.NotContains(t, m.keys, mr.LKey())
				m.keys = append(m.keys, mr.LKey())
				m.regions = append(m.regions, &modelRegion{mr: mr.(*memoryRegion), pd: pd})
			},
			"deregister": func(t *rapid.T) {
				if len(m.regions) == 0 {
					t.Skip("no region")
				}
				r := rapid.SampledFrom(m.regions).Draw(t, "region")
				err := r.mr.Close()
				switch {
				case r.dead:
					require.NoError(t, err)
					m.regions = slices.DeleteFunc(m.regions, func(o *modelRegion) bool { return o == r })
				case m.bindings(r) > 0:
					require.ErrorIs(t, err, verbs.ErrBusy)
				default:
					require.NoError(t, err)
					r.dead = true
				}
			},
			"allocate window": func(*rapid.T) {
				pd := anyPD()
				mw, err := pd.AllocMW()
				require.NoError(t, err)
				require.NotContains(t, m.keys, mw.RKey())
				m.keys = append(m.keys, mw.RKey())
				m.windows = append(m.windows, &modelWindow{mw: mw.(*memoryWindow), pd: pd, key: mw.RKey()})
			},
			"bind": func(t *rapid.T) {
				if len(m.regions) == 0 || len(m.windows) == 0 {
					t.Skip("nothing to bind")
				}
				r := rapid.SampledFrom(m.regions).Draw(t, "region")
				w := rapid.SampledFrom(m.windows).Draw(t, "window")
				pd, qpn := w.pd, anyQPN()
				off, size, key := 8*rapid.IntRange(0, 2).Draw(t, "from"), 16, verbs.IncRKey(w.key)
				if slip() {
					pd = anyPD()
				}
				if slip() {
					off, size = rapid.IntRange(-1, 32).Draw(t, "from"), rapid.IntRange(0, 33).Draw(t, "length")
				}
				if slip() {
					key = w.key ^ rapid.SampledFrom([]uint32{3, 0, 1 << 8}).Draw(t, "flip")
				}
				b := &verbs.BindMW{MW: w.mw, MR: r.mr, RKey: key, Addr: r.mr.Addr() + uint64(off), Length: uint64(size),
					Access: anyAccess() & (verbs.AccessRemote | verbs.AccessZeroBased)}
				writes := b.Access&(verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic) != 0
				possible := w.pd == pd && r.pd == pd && !w.dead && !r.dead && w.to == nil &&
					b.RKey != w.key && b.RKey>>8 == w.key>>8 &&
					r.mr.Access()&verbs.AccessMWBind != 0 && (!writes || r.mr.Access()&verbs.AccessLocalWrite != 0) &&
					off >= 0 && size > 0 && off+size <= r.mr.Len()
				if possible && b.Access&verbs.AccessZeroBased != 0 && b.Access&verbs.AccessRemoteAtomic != 0 {
					possible = realAddr(r.mr.Bytes()[off:])%8 == 0
				}
				fault := (*pdMemory)(pd).Bind(b, qpn)
				require.Equal(t, possible, fault == qp.NoFault, "%v", fault)
				if possible {
					w.key, w.to, w.qpn, w.off, w.size, w.access = b.RKey, r, qpn, off, size, b.Access
					m.keys = append(m.keys, w.key)
				}
				require.Equal(t, w.key, w.mw.RKey())
			},
			"invalidate": func(*rapid.T) {
				pd, key, qpn := anyPD(), anyKey(), anyQPN()
				w := m.window(key)
				if w != nil && !slip() {
					pd = w.pd
				}
				possible := w != nil && w.pd == pd && w.to != nil && w.qpn == qpn
				fault := (*pdMemory)(pd).Invalidate(key, qpn)
				require.Equal(t, possible, fault == qp.NoFault, "%v", fault)
				if possible {
					w.to = nil
				}
			},
			"deallocate window": func(t *rapid.T) {
				if len(m.windows) == 0 {
					t.Skip("no window")
				}
				w := rapid.SampledFrom(m.windows).Draw(t, "window")
				err := w.mw.Close()
				if w.dead {
					require.NoError(t, err)
					m.windows = slices.DeleteFunc(m.windows, func(o *modelWindow) bool { return o == w })
					return
				}
				require.NoError(t, err)
				w.dead, w.to = true, nil
			},
			"destroy queue pair": func(*rapid.T) {
				pd, qpn := anyPD(), anyQPN()
				pd.unbindQP(qpn)
				for _, w := range m.windows {
					if w.pd == pd && w.qpn == qpn {
						w.to = nil
					}
				}
			},
		})
	})
}
