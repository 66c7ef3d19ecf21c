package mpi_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
	"github.com/softrnic/softrnic/mpi/pmi"
)

// FuzzWinPacket sends arbitrary packets to a window, which rejects them or stays inside of its
// memory. The bytes are packets: tag, ID, length, flags, payload length, payload.
func FuzzWinPacket(f *testing.F) {
	packet := func(tag, id, length uint32, flags byte, payload []byte) []byte {
		b := binary.LittleEndian.AppendUint32(nil, tag)
		b = binary.LittleEndian.AppendUint32(b, id)
		b = binary.LittleEndian.AppendUint32(b, length)
		return append(append(b, flags, byte(len(payload))), payload...)
	}
	one := (&rma.Target{Element: rma.DenseElement(8), Vectors: []rma.Vector{{Off: 8, N: 1, Count: 1}}}).Append(nil)
	word := make([]byte, 8)
	kind := uint32(datatype.Int64) << 8
	var all []byte
	for k := range uint32(25) {
		for _, payload := range [][]byte{nil, word, one, append(one[:len(one):len(one)], word...), append(one[:len(one):len(one)], make([]byte, 16)...)} {
			f.Add(packet(k|kind|1<<16, 1, 8, byte(k), payload))
			all = append(all, packet(k|kind|1<<16, 0, 8, byte(k), payload)...)
		}
	}
	for _, payload := range [][]byte{littleEndian(1), append(append(littleEndian(1), one...), word...), littleEndian(1, 64)} {
		for k := range uint32(25) {
			f.Add(packet(k|kind|1<<16, 1, 8, byte(k), payload))
		}
	}
	f.Add(all)
	w, err := mpi.Init(open, mpi.Options{Manager: pmi.NewLocal(1)[0]})
	require.NoError(f, err)
	defer func() { require.NoError(f, w.Finalize()) }()
	f.Fuzz(func(t *testing.T, b []byte) {
		guarded := make([]byte, 16+64)
		static, err := mpi.WinCreate(w.Comm, guarded[8:72])
		require.NoError(t, err)
		dynamic, err := mpi.WinCreateDynamic(w.Comm)
		require.NoError(t, err)
		at, err := mpi.WinAttach(dynamic, guarded[8:72])
		require.NoError(t, err)
		require.NoError(t, dynamic.Fence())
		require.NoError(t, dynamic.Put(mpi.Of([]byte{1}), 0, mpi.At(at))) // so that it is looked up
		handOver(static, b)
		handOver(dynamic, b)
		require.Equal(t, make([]byte, 8), guarded[:8])
		require.Equal(t, make([]byte, 8), guarded[72:])
		_, _ = static.Free(), dynamic.Free() // the packets may be invalid
	})
}

// handOver passes packets to a window.
func handOver(win *mpi.Win, b []byte) {
	for len(b) >= 14 {
		h := envelope.Header{Kind: envelope.Active, Tag: int32(binary.LittleEndian.Uint32(b)), ID: uint64(binary.LittleEndian.Uint32(b[4:])),
			Length: uint64(binary.LittleEndian.Uint32(b[8:])), Flags: envelope.Flags(b[12] & 1)}
		n := min(int(b[13]), len(b)-14)
		h.Bytes = uint32(n)
		_ = win.WinPacket(0, h, b[14:][:n])
		b = b[14+n:]
	}
}

// littleEndian returns numbers in the byte order of packets.
func littleEndian(numbers ...uint64) (b []byte) {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

// TestWinProtocolViolations sends packets with unknown regions, replies without a request and
// returns of unknown regions: all are protocol violations without effect.
func TestWinProtocolViolations(t *testing.T) {
	w, err := mpi.Init(open, mpi.Options{Manager: pmi.NewLocal(1)[0]})
	require.NoError(t, err)
	static, _, err := mpi.WinAllocate[int64](w.Comm, 2)
	require.NoError(t, err)
	win, err := mpi.WinCreateDynamic(w.Comm)
	require.NoError(t, err)
	mine := make([]int64, 8)
	addr, err := mpi.WinAttach(win, mine)
	require.NoError(t, err)
	at, size := uint64(addr), uint64(64)

	put := (&rma.Target{Element: rma.DenseElement(8), Vectors: []rma.Vector{{Off: 8, N: 1, Count: 1}}}).Append(nil)
	beyond := (&rma.Target{Element: rma.DenseElement(8), Vectors: []rma.Vector{{Off: 64, N: 1, Count: 1}}}).Append(nil)
	named := func(piece uint64, target []byte, value uint64) []byte {
		return append(append(littleEndian(piece), target...), littleEndian(value)...)
	}
	key := make([]byte, envelope.KeySize)
	refusedAs := func(want error, tag int32, id uint64, payload []byte) {
		t.Helper()
		require.ErrorIs(t, win.WinPacket(0, envelope.Header{Tag: tag | int32(datatype.Int64)<<8, ID: id, Length: at}, payload), want)
	}
	refused := func(tag int32, id uint64, payload []byte) {
		t.Helper()
		refusedAs(protocol.ErrProtocol, tag, id, payload)
	}
	refused(mpi.PacketPut, 0, named(1, put, 5)) // not looked up yet
	refusedAs(rma.ErrMalformed, mpi.PacketPut, 0, nil)
	refused(mpi.PacketReturned, 1, nil)
	refused(mpi.PacketRecall, 1, nil)
	for _, span := range [][]byte{nil, littleEndian(at), littleEndian(at, 0), littleEndian(1<<64-8, 8), littleEndian(at, 8, 8)} {
		refused(mpi.PacketFind, 9, span)
	}
	refused(mpi.PacketFound, 9, append(littleEndian(1, at, size), key...))
	refused(mpi.PacketMissing, 9, littleEndian(0, 0, 0, 0))
	require.ErrorIs(t, static.WinPacket(0, envelope.Header{Tag: mpi.PacketFind}, littleEndian(at, 8)), protocol.ErrProtocol)

	require.NoError(t, win.Lock(mpi.LockShared, 0))
	require.NoError(t, win.Put(mpi.Of([]int64{7}), 0, mpi.At(addr))) // now it is looked up
	require.NoError(t, win.WinPacket(0, envelope.Header{Tag: mpi.PacketPut}, named(1, put, 5)))
	require.Equal(t, []int64{7, 5}, mine[:2])
	refusedAs(rma.ErrRange, mpi.PacketPut, 0, named(1, beyond, 5))
	refused(mpi.PacketPut, 0, named(2, put, 5))
	refused(mpi.PacketReturned, 1, nil) // not recalled
	refused(mpi.PacketRecall, 2, nil)
	require.NoError(t, win.Unlock(0))
	require.NoError(t, win.Detach(addr))
	refused(mpi.PacketPut, 0, named(1, put, 6))
	require.Equal(t, []int64{7, 5}, mine[:2])
	require.NoError(t, win.Free())
	require.NoError(t, static.Free())
	require.NoError(t, w.Finalize())
}
