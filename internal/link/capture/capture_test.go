package capture

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/wire"
)

func TestCapture(t *testing.T) {
	for _, ends := range [][2]netip.AddrPort{{addr4A, addr4B}, {addr6A, addr6B}} {
		a, b := ends[0], ends[1]
		w := connect(t, a, b)
		var out bytes.Buffer
		f := NewFile(&out, nil)
		w.exchange(t)
		w.tap.Add(f)
		packets := w.exchange(t)
		w.tap.Remove(f)
		w.exchange(t)
		require.NoError(t, f.Close())
		require.NoError(t, f.Close())
		require.EqualValues(t, packets, f.Recorded())

		got, stats := parse(t, &out)
		require.Len(t, got, packets)
		require.EqualValues(t, packets, stats.PacketsReceived)
		require.Zero(t, stats.PacketsDropped)
		ids := map[uint16]bool{}
		for i, p := range got {
			in := i >= packets/2
			want := frame{
				Interface: "softrnic " + a.String(), Time: start + 2000, Src: a, Dst: b,
				TOS: 0x6A, ID: p.ID, Data: p.Data,
			}
			if in {
				want.Inbound, want.Time, want.Src, want.Dst = true, start+4000, b, a
			}
			require.Equal(t, want, p)
			s := wire.NewICRC(p.Src, p.Dst)
			result, _ := s.Check(p.Data, p.ID)
			require.Equal(t, wire.ICRCExact, result)
			require.Equal(t, got[i%(packets/2)].Data[:12], p.Data[:12], "the same opcodes both ways")
			ids[p.ID] = true
		}
		require.Equal(t, a.Addr().Is4(), ids[1], "places in a group")
	}
}

// hidden is a link that, like a socket, does not report IPv4 identifications.
type hidden struct{ link.Conn }

func (h hidden) Caps() link.Caps {
	c := h.Conn.Caps()
	c.ExactID = false
	return c
}

func (h hidden) ReadBatch(r *link.Datagrams) (int, error) {
	n, err := h.Conn.ReadBatch(r)
	for i := range r.Msgs() {
		r.Msgs()[i].ID = 0
	}
	return n, err
}

// TestGuessedID receives groups of one sender at different times.
func TestGuessedID(t *testing.T) {
	w := connect(t, addr4B, addr4A)
	inner, err := w.network.Attach(netip.MustParseAddrPort("10.0.0.3:4791"), memory.Options{NoGRO: true})
	require.NoError(t, err)
	tap := NewTap(hidden{inner}, w.tap.clock)
	var out bytes.Buffer
	f := NewFile(&out, nil)
	tap.Add(f)
	b := link.NewBatch(1 << 16)
	for psn := range wire.PSN(4) {
		addPacket(b, &wire.Path{Dst: tap.LocalAddr()}, wire.RCSendMiddle, psn)
	}
	b.Corrupt(2, 200)
	require.NoError(t, w.peer.WriteBatch(b))
	w.network.AdvanceTo(1000)
	_, err = tap.ReadBatch(w.read)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	got, _ := parse(t, &out)
	require.Len(t, got, 4)
	for i, want := range []struct {
		id      uint16
		comment []string
	}{{0, nil}, {1, nil}, {0, []string{"ICRC wrong"}}, {3, nil}} {
		require.Equal(t, want.id, got[i].ID)
		require.Equal(t, want.comment, got[i].Comments)
	}
}

// TestRxeIDs records packets of Linux rdma_rxe without their identification, which the kernel
// chooses, and checks that the recorded identification is the one on the wire.
func TestRxeIDs(t *testing.T) {
	in, err := os.Open("../../../testdata/packets/rxe-capture/ops_read.pcap")
	require.NoError(t, err)
	defer in.Close()
	r, err := pcapgo.NewReader(in)
	require.NoError(t, err)
	var out bytes.Buffer
	f := NewFile(&out, nil)
	var want []uint16
	for {
		data, _, err := r.ReadPacketData()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		p := gopacket.NewPacket(data, r.LinkType(), gopacket.Default)
		ip, udp := p.NetworkLayer().(*layers.IPv4), p.TransportLayer().(*layers.UDP)
		src, _ := netip.AddrFromSlice(ip.SrcIP)
		dst, _ := netip.AddrFromSlice(ip.DstIP)
		f.Record(&Packet{
			Src: netip.AddrPortFrom(src, uint16(udp.SrcPort)), Dst: netip.AddrPortFrom(dst, uint16(udp.DstPort)),
			GuessedID: true, Data: udp.Payload,
		})
		want = append(want, ip.Id)
	}
	require.NoError(t, f.Close())
	got, _ := parse(t, &out)
	require.Len(t, got, len(want))
	require.Greater(t, len(got), 20)
	for i, p := range got {
		require.Empty(t, p.Comments)
		require.Equal(t, want[i], p.ID)
	}
}

// TestOtherID checks the recorded identification on a link that reports another one than the packet
// was sealed for.
func TestOtherID(t *testing.T) {
	b := link.NewBatch(1000)
	addPacket(b, &wire.Path{Dst: addr4B}, wire.RCSendOnly, 0)
	b.Seal(addr4A, false)
	_, pkt := b.Packet(0)
	p := Packet{Src: addr4A, Dst: addr4B, ID: 5, Data: pkt}
	id, comment := p.checkICRC()
	require.Equal(t, uint16(5), id)
	require.Equal(t, "ICRC of another IPv4 identification", comment)
}

func TestShared(t *testing.T) {
	w := connect(t, addr4A, addr4B)
	other := NewTap(w.peer, w.tap.clock)
	var out bytes.Buffer
	f := NewFile(&out, nil)
	ring := NewRing(10)
	w.tap.Add(f)
	w.tap.Add(ring)
	other.Add(f)
	b := link.NewBatch(1000)
	addPacket(b, &wire.Path{Dst: addr4B}, wire.RCSendOnly, 0)
	require.NoError(t, w.tap.WriteBatch(b))
	w.network.AdvanceTo(1000)
	_, err := other.ReadBatch(w.read)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	got, _ := parse(t, &out)
	require.Len(t, got, 2)
	require.Equal(t, "softrnic 10.0.0.1:4791", got[0].Interface)
	require.Equal(t, "softrnic 10.0.0.2:4791", got[1].Interface)
	require.Equal(t, got[0].Data, got[1].Data)

	var dump bytes.Buffer
	require.NoError(t, ring.Dump(&dump))
	got, _ = parse(t, &dump)
	require.Len(t, got, 1)
}

func TestEmpty(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, NewFile(&out, nil).Close())
	got, stats := parse(t, &out)
	require.Empty(t, got)
	require.Zero(t, stats.PacketsReceived)
}

func TestCompressed(t *testing.T) {
	_, err := Create(filepath.Join(t.TempDir(), "a.zst"), nil)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "rnicdebug")
	NewZstd = func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }
	defer func() { NewZstd = nil }()
	open := map[string]func(io.Reader) (io.Reader, error){
		"a.pcapng":     func(r io.Reader) (io.Reader, error) { return r, nil },
		"a.pcapng.gz":  func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"a.pcapng.zst": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) },
	}
	var size [3]int64
	for i, name := range []string{"a.pcapng", "a.pcapng.gz", "a.pcapng.zst"} {
		path := filepath.Join(t.TempDir(), name)
		f, err := Create(path, nil)
		require.NoError(t, err)
		w := connect(t, addr4A, addr4B)
		w.tap.Add(f)
		packets := w.exchange(t)
		require.NoError(t, f.Close())
		file, err := os.Open(path)
		require.NoError(t, err)
		defer file.Close()
		info, err := file.Stat()
		require.NoError(t, err)
		size[i] = info.Size()
		r, err := open[name](file)
		require.NoError(t, err)
		got, _ := parse(t, r)
		require.Len(t, got, packets)
	}
	require.Less(t, size[1], size[0]/2)
	require.Less(t, size[2], size[0]/2)

	_, err = Create(filepath.Join(t.TempDir(), "no", "such", "directory"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// stuck is a writer that blocks until it is released.
type stuck struct {
	bytes.Buffer
	goOn chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.goOn
	return s.Buffer.Write(p)
}

func TestSlowWriter(t *testing.T) {
	const packets = 5 * bufferPackets
	out := &stuck{goOn: make(chan struct{})}
	f := NewFile(out, nil)
	p := Packet{Direction: Out, Src: addr4A, Dst: addr4B, Data: make([]byte, 16)}
	for range packets {
		f.Record(&p) // never waits
	}
	require.GreaterOrEqual(t, f.Dropped(), uint64(3*bufferPackets))
	close(out.goOn)
	require.NoError(t, f.Close())
	got, stats := parse(t, out)
	require.EqualValues(t, packets, uint64(len(got))+f.Dropped())
	require.EqualValues(t, packets, stats.PacketsReceived)
	require.Equal(t, f.Dropped(), stats.PacketsDropped)

	out = &stuck{goOn: make(chan struct{})}
	f = NewFile(out, nil)
	p.Data = make([]byte, 60_000)
	for range 3 * bufferBytes / len(p.Data) {
		f.Record(&p)
	}
	require.NotZero(t, f.Dropped(), "bytes are bounded as well")
	close(out.goOn)
	require.NoError(t, f.Close())
}

// broken is a writer that accepts a number of bytes, and then fails.
type broken struct{ left int }

var errDisk = errors.New("no space left on device")

func (b *broken) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, errDisk
	}
	b.left -= len(p)
	return len(p), nil
}

func TestWriteError(t *testing.T) {
	for _, room := range []int{0, 300, 20_000} {
		reports := make(chan error, 10)
		w := connect(t, addr4A, addr4B)
		f := NewFile(&broken{room}, func(err error) { reports <- err })
		w.tap.Add(f)
		for range 20 {
			w.exchange(t) // not disturbed
		}
		require.ErrorIs(t, f.Close(), errDisk)
		require.NoError(t, f.Close())
		require.ErrorIs(t, <-reports, errDisk)
		require.Empty(t, reports, "once")

		f = NewFile(&broken{room}, nil)
		w.tap.Add(f)
		w.exchange(t)
		w.exchange(t)
		w.exchange(t)
		require.ErrorIs(t, f.Close(), errDisk)
		require.NoError(t, f.Close())
	}
}

// TestTruncateToBlocks cuts a file at each offset and checks that the remaining file has complete
// packets only.
func TestTruncateToBlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pcapng")
	f, err := Create(path, nil)
	require.NoError(t, err)
	w := connect(t, addr4A, addr4B)
	w.tap.Add(f)
	packets := w.exchange(t)
	require.NoError(t, f.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	most := 0
	for size := 0; size < len(whole); size += 1 + size/50 {
		require.NoError(t, os.WriteFile(path, whole[:size], 0o666))
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		require.NoError(t, truncateToBlocks(file))
		require.NoError(t, file.Close())
		cut, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, whole[:len(cut)], cut)
		if len(cut) == 0 {
			continue
		}
		got := readAll(t, cut)
		require.GreaterOrEqual(t, got, most)
		most = got
	}
	require.Positive(t, most)
	require.LessOrEqual(t, most, packets)
}

// readAll returns the number of packets in a capture that ends with a complete block.
func readAll(t *testing.T, b []byte) (packets int) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.DefaultNgReaderOptions)
	if errors.Is(err, io.EOF) {
		return 0 // no interface yet
	}
	require.NoError(t, err)
	for {
		_, _, err := r.ReadPacketData()
		if err == io.EOF {
			return packets
		}
		require.NoError(t, err)
		packets++
	}
}

func TestRing(t *testing.T) {
	ring := NewRing(5)
	dump := func() (psns []wire.PSN, stats *pcapgo.NgInterfaceStatistics) {
		var out bytes.Buffer
		require.NoError(t, ring.Dump(&out))
		got, stats := parse(t, &out)
		for _, p := range got {
			psns = append(psns, wire.ParseBTH(p.Data).PSN)
		}
		return psns, stats
	}
	got, _ := dump()
	require.Empty(t, got)

	w := connect(t, addr4A, addr4B)
	w.tap.Add(ring)
	b := link.NewBatch(1 << 16)
	send := func(from, to wire.PSN) {
		b.Reset()
		for psn := from; psn < to; psn++ {
			addPacket(b, &wire.Path{Dst: addr4B}, wire.RCSendMiddle, psn)
		}
		require.NoError(t, w.tap.WriteBatch(b))
	}
	send(0, 3)
	got, _ = dump()
	require.Equal(t, []wire.PSN{0, 1, 2}, got)
	send(3, 12)
	got, stats := dump()
	require.Equal(t, []wire.PSN{7, 8, 9, 10, 11}, got)
	require.EqualValues(t, 12, stats.PacketsReceived)
	require.EqualValues(t, 7, stats.PacketsDropped)
	require.ErrorIs(t, ring.Dump(&broken{}), errDisk)
}

// TestRingWhileRecording is for the race detector. Packets of a dump are in order.
func TestRingWhileRecording(t *testing.T) {
	ring := NewRing(50)
	w := connect(t, addr4A, addr4B)
	w.tap.Add(ring)
	done := make(chan struct{})
	var dumps sync.WaitGroup
	dumps.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				var out bytes.Buffer
				if err := ring.Dump(&out); err != nil {
					t.Error(err)
				}
				last := int64(0)
				got, _ := parse(t, &out)
				for _, p := range got {
					if p.Time < last {
						t.Errorf("%d behind %d", p.Time, last)
					}
					last = p.Time
				}
			}
		}
	})
	for range 200 {
		w.exchange(t)
	}
	close(done)
	dumps.Wait()
}

// blind is a link that reads the batch it gets.
type blind struct {
	link.Conn
	got *link.Batch
}

func (b *blind) WriteBatch(batch *link.Batch) error {
	b.got = batch
	return nil
}

func TestOff(t *testing.T) {
	w := connect(t, addr4A, addr4B)
	inner := &blind{Conn: w.tap.Unwrap()}
	tap := NewTap(inner, nil)
	b := link.NewBatch(1 << 16)
	addPacket(b, &wire.Path{Dst: addr4B}, wire.RCSendOnly, 0)
	require.NoError(t, tap.WriteBatch(b))
	require.Same(t, b, inner.got)
	_, pkt := b.Packet(0)
	require.Equal(t, make([]byte, 4), pkt[len(pkt)-4:], "sealing is left to the link")

	ring := NewRing(100)
	to := &wire.Path{Dst: addr4B}
	for range 2 {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			b.Reset()
			addPacket(b, to, wire.RCSendOnly, 0)
			w.tap.WriteBatch(b)
			w.network.AdvanceTo(w.network.Now() + 1000)
			w.peer.ReadBatch(w.read)
			w.tap.ReadBatch(w.read)
		}))
		w.tap.Add(ring) // once more, with the batch
		for range 200 {
			w.exchange(t)
		}
	}
	require.NotZero(t, ring.next)
}
