package link

import (
	"net/netip"
	"testing"

	"github.com/softrnic/softrnic/wire"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	here   = netip.MustParseAddrPort("10.0.0.1:4791")
	pathA  = &wire.Path{Dst: netip.MustParseAddrPort("10.0.0.2:4791")}
	pathA2 = &wire.Path{Dst: netip.MustParseAddrPort("10.0.0.2:4791")} // another QP's, same peer
	pathB  = &wire.Path{Dst: netip.MustParseAddrPort("10.0.0.3:4791")}
	pathCE = &wire.Path{Dst: netip.MustParseAddrPort("10.0.0.2:4791"), TrafficClass: 0xC2}
)

// run is a run of n packets of one size to one destination.
type run struct {
	to      *wire.Path
	n, size int
}

func TestGrouping(t *testing.T) {
	tests := []struct {
		name string
		in   []run
		want []int // packets per group
	}{
		{"nothing", nil, nil},
		{"one packet", []run{{pathA, 1, 24}}, []int{1}},
		{"reply and its ACK leave together", []run{{pathA, 1, 24}, {pathA, 1, 20}}, []int{2}},
		{"ACK ahead of a reply does not", []run{{pathA, 1, 20}, {pathA, 1, 24}}, []int{1, 1}},
		{"a message of 5 packets and its short last one", []run{{pathA, 5, 4112}, {pathA, 1, 100}}, []int{6}},
		{"a shorter packet closes the group", []run{{pathA, 2, 100}, {pathA, 2, 60}}, []int{3, 1}},
		{"equal after shorter is a new group", []run{{pathA, 1, 100}, {pathA, 1, 60}, {pathA, 1, 60}}, []int{2, 1}},
		{"WRITE FIRST with RETH goes alone", []run{{pathA, 1, 4128}, {pathA, 3, 4112}}, []int{1, 3}},
		{"equal paths of two QPs", []run{{pathA, 1, 24}, {pathA2, 1, 24}}, []int{2}},
		{"destinations", []run{{pathA, 2, 24}, {pathB, 2, 24}, {pathA, 1, 24}}, []int{2, 2, 1}},
		{"traffic classes", []run{{pathA, 1, 24}, {pathCE, 1, 24}}, []int{1, 1}},
		{"64 segments", []run{{pathA, 64, 24}, {pathA, 65, 24}}, []int{64, 64, 1}},
		{"64 segments, a short one does not fit", []run{{pathA, 64, 24}, {pathA, 1, 20}}, []int{64, 1}},
		{"65473 bytes", []run{{pathA, 16, 4112}}, []int{15, 1}},
		{"exactly 65473 bytes", []run{{pathA, 2, 32000}, {pathA, 1, maxGroupBytes - 64000}, {pathA, 1, 16}}, []int{3, 1}},
		{"a byte too many", []run{{pathA, 2, 32000}, {pathA, 1, maxGroupBytes - 64000 + 1}}, []int{2, 1}},
		{"largest packets", []run{{pathA, 2, MaxPacket}}, []int{1, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := NewBatch(1 << 20)
			for _, r := range test.in {
				for range r.n {
					require.Len(t, b.Next(r.to, r.size), r.size)
				}
			}
			var got []int
			for _, g := range b.groups {
				got = append(got, g.count)
			}
			require.Equal(t, test.want, got)
		})
	}
}

// TestBatchProperty lays out random packets and checks that the batch contains them and that every
// group obeys the rules of UDP_SEGMENT.
func TestBatchProperty(t *testing.T) {
	paths := []*wire.Path{pathA, pathA2, pathB, pathCE}
	size := rapid.OneOf(
		rapid.SampledFrom([]int{16, 20, 24, 4112, 4116, 4128, MaxPacket}),
		rapid.IntRange(16, MaxPacket))
	b := NewBatch(300_000)
	rapid.Check(t, func(t *rapid.T) {
		b.Reset()
		type sent struct {
			to  *wire.Path
			pkt []byte
		}
		var want []sent
		bytes := 0
		for range rapid.IntRange(0, 8).Draw(t, "runs") {
			to := rapid.SampledFrom(paths).Draw(t, "path")
			n := size.Draw(t, "size")
			head := rapid.SampledFrom([]int{0, 16, 28}).Draw(t, "head")
			for range rapid.IntRange(1, 70).Draw(t, "packets") {
				if rapid.IntRange(0, 9).Draw(t, "other size") == 0 {
					n = size.Draw(t, "size")
				}
				if rapid.IntRange(0, 9).Draw(t, "cancel") == 0 {
					if appendPacket(b, rapid.SampledFrom(paths).Draw(t, "canceled path"), size.Draw(t, "canceled size"), 0, head) != nil {
						b.Cancel()
					}
				}
				pkt := appendPacket(b, to, n, uint64(len(want)), head)
				if pkt == nil {
					require.Greater(t, bytes+n, b.Cap(), "full")
					break
				}
				bytes += n
				want = append(want, sent{to, pkt})
			}
		}
		gso := rapid.Bool().Draw(t, "gso")
		if len(want) > 0 && rapid.Bool().Draw(t, "look first") {
			b.Packet(rapid.IntRange(0, len(want)-1).Draw(t, "at"))
		}
		b.Seal(here, gso)

		require.Equal(t, len(want), b.Len())
		require.Equal(t, bytes, b.Bytes())
		next := 0
		for i := range b.Groups() {
			to, buf, seg := b.Group(i)
			require.True(t, len(buf) <= maxGroupBytes || len(buf) == seg)
			n := 0
			for ; len(buf) > 0; n++ {
				w := want[next]
				pkt := buf[:min(seg, len(buf))]
				buf = buf[len(pkt):]
				require.True(t, samePath(w.to, to))
				require.Equal(t, w.pkt, pkt[:len(pkt)-4], "packet %d", next)
				again, same := b.Packet(next)
				require.True(t, samePath(w.to, again))
				require.Equal(t, pkt, same)

				id := uint16(0)
				if gso {
					id = uint16(n)
				}
				require.Equal(t, id, b.ID(next))
				s := wire.NewICRC(here, to.Dst)
				check, _ := s.Check(pkt, id)
				require.Equal(t, wire.ICRCExact, check)
				next++
			}
			require.LessOrEqual(t, n, maxSegments)
		}
		require.Equal(t, len(want), next)
		require.False(t, b.HasZeroCopy(), "all have been looked at")
	})
}

func TestBatchFull(t *testing.T) {
	b := NewBatch(100)
	require.Len(t, b.Next(pathA, 60), 60)
	require.Nil(t, b.Next(pathA, 60))
	require.Equal(t, 1, b.Len())
	require.False(t, b.Append(pathA, make([]byte, 41)))
	require.True(t, b.Append(pathA, make([]byte, 40)), "a smaller one still fits")
	b.Reset()
	require.Zero(t, b.Len())
	require.Zero(t, b.Bytes())
	require.Len(t, b.Next(pathA, 100), 100)

	require.Panics(t, func() { b.Next(pathA, 15) }, "no room for BTH and ICRC")
	require.Panics(t, func() { b.Next(pathA, 101) }, "never fits")
	require.Panics(t, func() { NewBatch(1<<20).Next(pathA, MaxPacket+1) }, "no UDP datagram")
}

// TestBatchGrows checks that a batch takes memory for what it has to hold, up to its maximum.
func TestBatchGrows(t *testing.T) {
	const most = 4*firstBytes - 1000
	b := NewGrowingBatch(most)
	for _, want := range []int{firstBytes, 2 * firstBytes, most, most} {
		b.Next(pathA, 100)
		b.Reset() // was not full
		require.Equal(t, want, b.Cap())
		bytes := 0
		for b.Next(pathA, 1000) != nil {
			bytes += 1000
		}
		require.Equal(t, want/1000*1000, bytes)
		b.Reset()
	}
}

func TestAppend(t *testing.T) {
	from, to := NewBatch(4096), NewBatch(4096)
	for i := range 3 {
		fill(from.Next(pathA, 100), uint64(i))
	}
	from.Seal(here, true)
	for _, i := range []int{0, 2} { // packet 1 is dropped
		path, pkt := from.Packet(i)
		require.True(t, to.Append(path, pkt))
	}
	to.Seal(here, true)
	_, sent := from.Packet(2)
	_, got := to.Packet(1)
	require.Equal(t, sent[:96], got[:96])
	require.NotEqual(t, sent[96:], got[96:], "sealed anew, for identification 1 instead of 2")
}

// check returns the verdict on packet i of b for identification id.
func check(b *Batch, i int, id uint16) wire.ICRCResult {
	to, pkt := b.Packet(i)
	s := wire.NewICRC(here, to.Dst)
	result, _ := s.Check(pkt, id)
	return result
}

// TestSealAgain seals a batch piecemeal, first for GSO and then for single datagrams.
func TestSealAgain(t *testing.T) {
	b := NewBatch(4096)
	next := func() { appendPacket(b, pathA, 100, uint64(b.Len()), 16*(b.Len()%2)) }
	next()
	b.Seal(here, true)
	next()
	next()
	b.Seal(here, true)
	for i := range 3 {
		require.Equal(t, wire.ICRCExact, check(b, i, uint16(i)))
	}
	b.Seal(here, false)
	for i := range 3 {
		require.Equal(t, wire.ICRCExact, check(b, i, 0))
	}
	b.Seal(netip.MustParseAddrPort("10.0.0.9:4791"), false)
	require.Equal(t, wire.ICRCBad, check(b, 0, 0), "another sender")
}

func TestCorrupt(t *testing.T) {
	b := NewBatch(4096)
	for i := range 3 {
		appendPacket(b, pathA, 100, uint64(i), 16*i)
	}
	b.Corrupt(1, 8*50+3)
	_, pkt := b.Packet(1)
	before := pkt[50]
	b.Seal(here, true)
	require.Equal(t, before^8, pkt[50])
	for _, gso := range []bool{true, true, false, true} {
		b.Seal(here, gso)
		require.Equal(t, wire.ICRCExact, check(b, 0, b.ID(0)))
		require.Equal(t, wire.ICRCBad, check(b, 1, b.ID(1)), "sealing again must not heal the damage")
		require.Equal(t, wire.ICRCExact, check(b, 2, b.ID(2)))
	}
	b.Corrupt(2, 0)
	require.Equal(t, wire.ICRCBad, check(b, 2, b.ID(2)), "at once when sealed already")

	b.Reset()
	fill(b.Next(pathA, 100), 0)
	b.Seal(here, true)
	require.Equal(t, wire.ICRCExact, check(b, 0, 0), "Reset forgets the flips")
}

// TestSealerCache sends to more destinations than the cache has entries.
func TestSealerCache(t *testing.T) {
	b := NewBatch(1 << 16)
	for round := range 3 {
		b.Reset()
		for host := range 40 {
			ip := netip.AddrFrom4([4]byte{10, 1, byte(round % 2), byte(host)})
			b.Next(&wire.Path{Dst: netip.AddrPortFrom(ip, RoCEPort)}, 100)
		}
		b.Seal(here, true)
		for i := range b.Len() {
			require.Equal(t, wire.ICRCExact, check(b, i, 0))
		}
	}
}

func TestBatchDoesNotAllocate(t *testing.T) {
	b := NewBatch(1 << 16)
	paths := make([]*wire.Path, 20)
	for i := range paths {
		paths[i] = &wire.Path{Dst: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), RoCEPort)}
	}
	lap := func() {
		b.Reset()
		for _, to := range paths {
			b.Next(to, 1000)
			b.Next(to, 1000)
		}
		b.Corrupt(3, 3)
		b.Seal(here, true)
		b.Seal(here, false)
	}
	lap()
	require.Zero(t, testing.AllocsPerRun(100, lap))
}

// TestSeparate checks that packets that must be separated are in different groups, with the
// identifications of their groups, and that others stay together.
func TestSeparate(t *testing.T) {
	to := &wire.Path{Dst: netip.MustParseAddrPort("192.0.2.1:4791")}
	b := NewBatch(1 << 16)
	b.Separate(func(first, later []byte) bool { return first[5] != later[5] })
	for range 2 { // also after a reset
		for _, kind := range []byte{1, 1, 1, 2, 1, 1, 3, 3, 4} {
			b.Next(to, 64)[5] = kind
		}
		b.Seal(netip.MustParseAddrPort("192.0.2.2:4791"), true)
		var sizes []int
		for i := range b.Groups() {
			_, buf, seg := b.Group(i)
			require.Equal(t, 64, seg)
			sizes = append(sizes, len(buf)/seg)
		}
		require.Equal(t, []int{3, 1, 2, 2, 1}, sizes)
		require.Equal(t, []uint16{2, 0, 0, 1}, []uint16{b.ID(2), b.ID(3), b.ID(4), b.ID(5)})
		b.Reset()
	}
}

// TestAppendGroup copies a group with its bit flips, which are in the packets before or after, and
// which the ICRC of the copy reveals.
func TestAppendGroup(t *testing.T) {
	src := netip.MustParseAddrPort("127.0.0.1:4791")
	path := &wire.Path{Dst: netip.MustParseAddrPort("127.0.0.2:4791")}
	for _, sealed := range []bool{false, true} {
		from, to := NewBatch(4096), NewBatch(4096)
		for range 3 {
			clear(from.Next(path, 64))
		}
		if sealed {
			from.Seal(src, true)
		}
		from.Corrupt(1, 300)
		require.True(t, from.MustSeal())
		clear(to.Next(path, 100))
		require.False(t, to.MustSeal())
		require.True(t, to.AppendGroup(from, 0))
		to.Seal(src, false)
		icrc := wire.NewICRC(src, path.Dst)
		for i := range 4 {
			_, pkt := to.Packet(i)
			result, _ := icrc.Check(pkt, 0)
			require.Equal(t, i == 2, result == wire.ICRCBad, "packet %d", i)
		}
		require.False(t, NewBatch(100).AppendGroup(from, 0), "it does not fit")
	}
}
