package impair

import (
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/wire"
	"github.com/stretchr/testify/require"
)

func TestRulesOut(t *testing.T) {
	mixed := []packet{
		{op: wire.RCWriteFirst, qpn: 7, psn: 0, payload: 256},
		{op: wire.RCWriteMiddle, qpn: 7, psn: 1, payload: 256},
		{op: wire.RCWriteLast, qpn: 7, psn: 2, payload: 256},
		{op: wire.RCSendOnly, qpn: 8, psn: 3},
		{op: wire.RCAck, qpn: 8, psn: 4, syndrome: wire.AckSyndrome(31)},
		{op: wire.RCAck, qpn: 8, psn: 5, syndrome: wire.NakPSNSequence},
		{op: wire.RCAck, qpn: 8, psn: 6, syndrome: wire.RNRSyndrome(1)},
		{op: wire.RCAck, qpn: 8, psn: 7, syndrome: wire.AckSyndrome(0)},
		{op: wire.RCFetchAdd, qpn: 8, psn: 8},
		{op: wire.UDSendOnlyImm, qpn: 9, psn: 9},
		{op: wire.CNP, qpn: 9, psn: 10},
		{op: 0x1F, qpn: 9, psn: 11}, // no opcode at all
	}
	tests := []struct{ rule, want string }{
		{"drop", ""},
		{"drop 3rd", "0 1 3 4 5 6 7 8 9 10 11"},
		{"drop every 3rd", "0 1 3 4 6 7 9 10"},
		{"drop first 10", "10 11"},
		{"drop WRITE", "3 4 5 6 7 8 9 10 11"},
		{"drop 2nd WRITE", "0 2 3 4 5 6 7 8 9 10 11"},
		{"drop FIRST", "1 2 3 4 5 6 7 8 9 10 11"},
		{"drop ONLY", "0 1 2 4 5 6 7 8 10 11"},
		{"drop ACKNOWLEDGE", "0 1 2 3 8 9 10 11"},
		{"drop ACK", "0 1 2 3 5 6 8 9 10 11"},
		{"drop every 2nd ACK", "0 1 2 3 4 5 6 8 9 10 11"},
		{"drop NAK", "0 1 2 3 4 6 7 8 9 10 11"},
		{"drop RNR", "0 1 2 3 4 5 7 8 9 10 11"},
		{"drop ATOMIC", "0 1 2 3 4 5 6 7 9 10 11"},
		{"drop UD", "0 1 2 3 4 5 6 7 8 10 11"},
		{"drop IMM", "0 1 2 3 4 5 6 7 8 10 11"},
		{"drop CNP", "0 1 2 3 4 5 6 7 8 9 11"},
		{"drop qp 8", "0 1 2 9 10 11"},
		{"drop NAK of qp 7", "0 1 2 3 4 5 6 7 8 9 10 11"},
		{"drop psn 8", "0 1 2 3 4 5 6 7 9 10 11"},
		{"drop SEND psn 8", "0 1 2 3 4 5 6 7 8 9 10 11"},
		{"drop in", "0 1 2 3 4 5 6 7 8 9 10 11"},
		{"drop 2nd; drop 2nd", "0 2 3 4 5 6 7 8 9 10 11"}, // both count all packets
		{"duplicate 2nd WRITE", "0 1 1 2 3 4 5 6 7 8 9 10 11"},
		{"duplicate WRITE; drop 2nd WRITE", "0 0 2 2 3 4 5 6 7 8 9 10 11"},
		{"corrupt icrc of 1st WRITE_LAST", "0 1 2! 3 4 5 6 7 8 9 10 11"},
		{"corrupt icrc of WRITE; duplicate psn 1", "0! 1! 1! 2! 3 4 5 6 7 8 9 10 11"},
		{"delay 5ms WRITE", "3 4 5 6 7 8 9 10 11 0 1 2"},
		{"delay 5ms WRITE; delay 2ms FIRST", "3 4 5 6 7 8 9 10 11 1 2 0"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			r := newRig(t, test.rule)
			r.send(mixed...)
			require.Equal(t, test.want, psns(r.runPeer()))
		})
	}
}

func TestProbability(t *testing.T) {
	r := newRig(t, "drop 25% SEND; seed 3")
	r.send(train(wire.RCSendMiddle, 1000)...)
	require.Equal(t, 749, len(r.runPeer()))
	counts := r.conn.Counts()
	require.EqualValues(t, 251, counts.Dropped)
	require.Equal(t, []RuleCount{{parse("drop 25% SEND").Rules[0], 1000, 251}}, counts.Rules)
}

func TestCorruptBits(t *testing.T) {
	r := newRig(t, "corrupt out; seed 5")
	r.send(train(wire.RCSendMiddle, 500)...)
	bad := 0
	for _, s := range r.runPeer() {
		if s.icrc == wire.ICRCBad {
			bad++
		}
	}
	// The ICRC does not cover eight of the 640 bits of a packet, those of BTH byte 4.
	require.Equal(t, 494, bad)
	require.EqualValues(t, 500, r.conn.Counts().Corrupted)
}

// TestCorruptICRC checks that a packet with an inverted bit does not match the ICRC of another
// identification.
func TestCorruptICRC(t *testing.T) {
	s := wire.NewICRC(here, there)
	for n := wire.MinPacketLen; n < 5000; n++ {
		pkt := make([]byte, n)
		s.Put(pkt, 0)
		pkt[n-wire.ICRCLen] ^= 1
		result, _ := s.Check(pkt, 0)
		require.Equal(t, wire.ICRCBad, result, "%d bytes", n)
	}
}

func TestMark(t *testing.T) {
	r := newRig(t, "mark ecn every 2nd SEND")
	all := train(wire.RCSendMiddle, 4)
	all[2].to, all[3].to = wayECT, wayECT
	r.send(all...)
	var tos []uint8
	for _, s := range r.runPeer() {
		require.Equal(t, wire.ICRCExact, s.icrc)
		require.Equal(t, s.tos&3 == 3, s.fecn)
		tos = append(tos, s.tos)
	}
	require.Equal(t, []uint8{0, 3, 0x6a, 0x6b}, tos)
	require.Equal(t, uint8(0x6a), wayECT.TrafficClass, "the path itself belongs to others")
	require.EqualValues(t, 2, r.conn.Counts().Marked)
}

func TestRelativePSN(t *testing.T) {
	at := func(op wire.Opcode, qpn uint32, psn wire.PSN) packet { return packet{op: op, qpn: qpn, psn: psn} }
	r := newRig(t, "drop always psn +2")
	r.send(
		at(wire.RCSendOnly, 7, 0xFFFFFF), at(wire.RCAck, 7, 500), // requests and responses are counted separately
		at(wire.RCSendOnly, 8, 100),
		at(wire.RCSendOnly, 7, 0), at(wire.RCSendOnly, 7, 1), // past the wrap
		at(wire.RCAck, 7, 501), at(wire.RCAck, 7, 502),
		at(wire.RCSendOnly, 8, 101), at(wire.RCSendOnly, 8, 102), at(wire.RCSendOnly, 8, 103),
		at(wire.RCSendOnly, 7, 1), at(wire.RCSendOnly, 7, 2),
	)
	require.Equal(t, "16777215 500 100 0 501 101 103 2", psns(r.runPeer()))

	r = newRig(t, "drop psn +2")
	r.send(train(wire.RCSendMiddle, 3)...)
	r.send(train(wire.RCSendMiddle, 3)...)
	require.Equal(t, "0 1 0 1 2", psns(r.runPeer()), "once: not its retransmission")
}

func TestRelativePSNMemory(t *testing.T) {
	rules := newRules(&Spec{Rules: []Rule{{Match: Match{PSN: RelativePSN(0)}}}}, Out, source(1))
	b := link.NewBatch(100)
	for qpn := range uint32(maxStreams + 100) {
		b.Reset()
		packet{op: wire.RCSendOnly, qpn: qpn + 1}.appendTo(b, ways)
		_, pkt := b.Packet(0)
		require.Equal(t, qpn < maxStreams, rules.apply(there, pkt).drop)
	}
}

func TestRulesIn(t *testing.T) {
	tests := []struct {
		rule, want string
		groups     []int
	}{
		{"drop out", "0 1 2 3 4 5", []int{6}},
		{"drop in", "", nil},
		{"drop in 3rd", "0 1 3 4 5", []int{2, 3}},
		{"drop in 1st", "1 2 3 4 5", []int{5}},
		{"drop in 6th", "0 1 2 3 4", []int{5}},
		{"duplicate in 3rd SEND", "0 1 2 2 3 4 5", []int{2, 1, 1, 3}},
		{"corrupt icrc in 5th SEND", "0 1 2 3 4! 5", []int{4, 1, 1}},
		{"delay 1ms in psn 1", "0 2 3 4 5 1", []int{1, 4, 1}},
		{"delay 1ms in psn 5", "0 1 2 3 4 5", []int{5, 1}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			r := newRig(t, test.rule)
			all := train(wire.RCSendMiddle, 6)
			all[5].payload = 4 // the last of a group may be shorter
			r.sendBack(all...)
			got := r.runHere()
			require.Equal(t, test.want, psns(got))
			require.Equal(t, test.groups, groups(got))
		})
	}
	r := newRig(t, "mark ecn in 2nd")
	r.sendBack(train(wire.RCSendMiddle, 3)...)
	got := r.runHere()
	require.Equal(t, []uint8{0x68, 0x6b, 0x68}, []uint8{got[0].tos, got[1].tos, got[2].tos})
}

// TestInOverflow splits one datagram into more packets than the reader has slots.
func TestInOverflow(t *testing.T) {
	r := newRig(t, "drop in every 2nd")
	r.sendBack(train(wire.RCSendMiddle, 40)...)
	require.Equal(t, 20, len(r.runHere()))
	require.Less(t, r.read.Cap(), 20)
}

func TestInShortDatagram(t *testing.T) {
	rules := newRules(&Spec{Rules: []Rule{{}}}, Out, source(1))
	require.False(t, rules.apply(here, make([]byte, wire.MinPacketLen-1)).drop)
	require.True(t, rules.apply(here, make([]byte, wire.MinPacketLen)).drop)
}

func TestInDelayLimit(t *testing.T) {
	r := newRig(t, "limit 2; delay 1ms in")
	r.sendBack(train(wire.RCSendMiddle, 3)...)
	require.Equal(t, "0 1", psns(r.runHere()))
	require.EqualValues(t, 1, r.conn.Counts().Overflow)
	require.EqualValues(t, 2, r.conn.Counts().Delayed)
	require.Equal(t, int64(time.Millisecond+memory.DefaultDelay), r.network.Now())
}

// TestEveryName parses the name of each opcode.
func TestEveryName(t *testing.T) {
	for code := range 256 {
		info := wire.Opcode(code).Info()
		if !info.Valid {
			continue
		}
		s, err := lookupSelector(info.Name)
		require.NoError(t, err)
		for other := range 256 {
			require.Equal(t, other == code, s.opcodes[other], "%s, opcode %#x", info.Name, other)
		}
	}
	for name, want := range map[string][]wire.Opcode{
		"SEND_LAST":     {wire.RCSendLast, wire.RCSendLastImm, wire.RCSendLastInv, wire.UCSendLast, wire.UCSendLastImm},
		"RC_WRITE_IMM":  {wire.RCWriteLastImm, wire.RCWriteOnlyImm},
		"READ_RESPONSE": {wire.RCReadRespFirst, wire.RCReadRespMiddle, wire.RCReadRespLast, wire.RCReadRespOnly, wire.UDXReadResponse},
		"READ_REQUEST":  {wire.RCReadRequest, wire.UDXReadRequest},
		"INV":           {wire.RCSendLastInv, wire.RCSendOnlyInv},
		"ATOMIC":        {wire.RCCmpSwap, wire.RCFetchAdd},
		"COMPARE_SWAP":  {wire.RCCmpSwap, wire.UDXCmpSwap},
		"UD":            {wire.UDSendOnly, wire.UDSendOnlyImm},
		"NAK":           {wire.RCAck},
		"CNP":           {wire.CNP},
	} {
		s, err := lookupSelector(name)
		require.NoError(t, err)
		var got []wire.Opcode
		for code, is := range s.opcodes {
			if is {
				got = append(got, wire.Opcode(code))
			}
		}
		require.ElementsMatch(t, want, got, name)
	}
	for _, name := range []string{"READ", "RC_CNP", "SEND_FIRST_IMM", "LAST_SEND", "_"} {
		_, err := lookupSelector(name)
		require.Error(t, err, name)
	}
}
