package onesided

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
	"github.com/softrnic/softrnic/mpi/internal/rma"
)

// FuzzPacket sends arbitrary packets to a window, which rejects them or stays inside of its
// memory. The bytes are packets: tag, ID, length, flags, payload length, payload.
func FuzzPacket(f *testing.F) {
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
	table := newTable(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		guarded := make([]byte, 16+64)
		mem := guarded[8:72]
		static := newWindow(t, table, 2, Memory{Bytes: mem, Kind: datatype.Uint8, Unit: 1})
		dynamic := newWindow(t, table, 4, Memory{Kind: datatype.Byte, Unit: 1, Dynamic: true})
		require.NoError(t, dynamic.AttachMemory(mem))
		require.NoError(t, dynamic.FenceEpoch(false, false))
		put := NewPut(datatype.Of([]byte{1}), rma.At(int(addressOf(mem))))
		require.NoError(t, dynamic.StartOperation(&put, 0, nil)) // so that it is looked up
		handOver(table, static, b)
		handOver(table, dynamic, b)
		require.Equal(t, make([]byte, 8), guarded[:8])
		require.Equal(t, make([]byte, 8), guarded[72:])
		_, _ = table.FreeWindow(static) // the packets may be invalid
		_, _ = table.FreeWindow(dynamic)
	})
}

// handOver passes packets to a window.
func handOver(table *Table, w *Window, b []byte) {
	for len(b) >= 14 {
		h := envelope.Header{Kind: envelope.Active, Tag: int32(binary.LittleEndian.Uint32(b)), ID: uint64(binary.LittleEndian.Uint32(b[4:])),
			Length: uint64(binary.LittleEndian.Uint32(b[8:])), Flags: envelope.Flags(b[12] & 1)}
		n := min(int(b[13]), len(b)-14)
		h.Bytes = uint32(n)
		_ = table.deliver(w, 0, h, b[14:][:n])
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

// TestProtocolViolations sends packets with unknown regions, replies without a request and
// returns of unknown regions: all are protocol violations without effect.
func TestProtocolViolations(t *testing.T) {
	table := newTable(t)
	static := newWindow(t, table, 2, Memory{Bytes: make([]byte, 16), Kind: datatype.Int64, Unit: 8})
	w := newWindow(t, table, 4, Memory{Kind: datatype.Byte, Unit: 1, Dynamic: true})
	mine := make([]int64, 8)
	mem, _, err := datatype.Raw(mine)
	require.NoError(t, err)
	require.NoError(t, w.AttachMemory(mem))
	at, size := addressOf(mem), uint64(64)

	put := (&rma.Target{Element: rma.DenseElement(8), Vectors: []rma.Vector{{Off: 8, N: 1, Count: 1}}}).Append(nil)
	beyond := (&rma.Target{Element: rma.DenseElement(8), Vectors: []rma.Vector{{Off: 64, N: 1, Count: 1}}}).Append(nil)
	named := func(piece uint64, target []byte, value uint64) []byte {
		return append(append(littleEndian(piece), target...), littleEndian(value)...)
	}
	key := make([]byte, envelope.KeySize)
	refusedAs := func(want error, k packetType, id uint64, payload []byte) {
		t.Helper()
		require.ErrorIs(t, table.deliver(w, 0, envelope.Header{Tag: int32(k) | int32(datatype.Int64)<<8, ID: id, Length: at}, payload), want)
	}
	refused := func(k packetType, id uint64, payload []byte) {
		t.Helper()
		refusedAs(protocol.ErrProtocol, k, id, payload)
	}
	refused(packetPut, 0, named(1, put, 5)) // not looked up yet
	refusedAs(rma.ErrMalformed, packetPut, 0, nil)
	refused(packetReturned, 1, nil)
	refused(packetRecall, 1, nil)
	for _, span := range [][]byte{nil, littleEndian(at), littleEndian(at, 0), littleEndian(1<<64-8, 8), littleEndian(at, 8, 8)} {
		refused(packetFind, 9, span)
	}
	refused(packetFound, 9, append(littleEndian(1, at, size), key...))
	refused(packetMissing, 9, littleEndian(0, 0, 0, 0))
	require.ErrorIs(t, table.deliver(static, 0, envelope.Header{Tag: int32(packetFind)}, littleEndian(at, 8)), protocol.ErrProtocol)

	require.NoError(t, w.LockRank(Shared, 0, false))
	first := NewPut(datatype.Of([]int64{7}), rma.At(int(at)))
	require.NoError(t, w.StartOperation(&first, 0, nil)) // now it is looked up
	require.NoError(t, table.deliver(w, 0, envelope.Header{Tag: int32(packetPut)}, named(1, put, 5)))
	require.Equal(t, []int64{7, 5}, mine[:2])
	refusedAs(rma.ErrRange, packetPut, 0, named(1, beyond, 5))
	refused(packetPut, 0, named(2, put, 5))
	refused(packetReturned, 1, nil) // not recalled
	refused(packetRecall, 2, nil)
	require.NoError(t, w.UnlockRank(0))
	require.NoError(t, w.DetachMemory(int(at)))
	refused(packetPut, 0, named(1, put, 6))
	require.Equal(t, []int64{7, 5}, mine[:2])
	for _, x := range []*Window{w, static} {
		freed, err := table.FreeWindow(x)
		require.NoError(t, err)
		require.True(t, freed)
	}
}

// TestTooManyMessages checks that a rank that announces messages without end is disconnected
// before it uses up the memory.
func TestTooManyMessages(t *testing.T) {
	table := newTable(t)
	w := newWindow(t, table, 2, Memory{Bytes: make([]byte, 64), Kind: datatype.Uint8, Unit: 1})
	var err error
	target := (&rma.Target{Element: rma.DenseElement(1), Vectors: []rma.Vector{{Off: 8, N: 16, Count: 1}}}).Append(nil)
	told := 0
	for ; err == nil && told <= maxReplies; told++ {
		err = table.deliver(w, 0, envelope.Header{Tag: int32(packetSend), ID: uint64(told), Length: 16}, target)
	}
	require.ErrorIs(t, err, protocol.ErrProtocol)
	require.ErrorContains(t, err, "messages at a time")
	require.Equal(t, maxReplies+1, told)
}

// TestBarrierOfLostRank checks that a barrier completes when the rank that has signalled leaves the
// job at once, as the first rank to return from Free may.
func TestBarrierOfLostRank(t *testing.T) {
	w := newWindow(t, newTable(t), 2, Memory{Bytes: make([]byte, 8), Kind: datatype.Byte, Unit: 1})
	w.barrierSignals = make([]int, 1) // a round, whose signal goes to the rank itself
	w.eng.Do(func(*protocol.Core) { w.broken = protocol.ErrLost })
	require.NoError(t, w.fenceBarrier())
	require.Equal(t, []int{0}, w.barrierSignals)
	never := func() bool { return false }
	require.ErrorIs(t, w.waitUntil("a signal", never, nil, 0), protocol.ErrLost)
}
