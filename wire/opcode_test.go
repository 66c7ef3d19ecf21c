package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire"
)

// specOpcodes lists the opcodes a second time, in the words of the specification: code, name,
// extended headers in wire order, payload (P exactly the MTU, L one byte to the MTU, O nothing to
// the MTU, 8 exactly 8 bytes, - none), and whether the packet consumes a receive WQE.
const specOpcodes = `
00 SEND_FIRST              -                    P recv
01 SEND_MIDDLE             -                    P
02 SEND_LAST               -                    L
03 SEND_LAST_IMM           ImmDt                L
04 SEND_ONLY               -                    O recv
05 SEND_ONLY_IMM           ImmDt                O recv
06 WRITE_FIRST             RETH                 P
07 WRITE_MIDDLE            -                    P
08 WRITE_LAST              -                    L
09 WRITE_LAST_IMM          ImmDt                L recv
0A WRITE_ONLY              RETH                 O
0B WRITE_ONLY_IMM          RETH,ImmDt           O recv
0C READ_REQUEST            RETH                 -
0D READ_RESPONSE_FIRST     AETH                 P
0E READ_RESPONSE_MIDDLE    -                    P
0F READ_RESPONSE_LAST      AETH                 L
10 READ_RESPONSE_ONLY      AETH                 O
11 ACKNOWLEDGE             AETH                 -
12 ATOMIC_ACKNOWLEDGE      AETH,AtomicAckETH    -
13 COMPARE_SWAP            AtomicETH            -
14 FETCH_ADD               AtomicETH            -
16 SEND_LAST_INV           IETH                 L
17 SEND_ONLY_INV           IETH                 O recv
1C FLUSH                   FETH,RETH            -
1D ATOMIC_WRITE            RETH                 8
`

type specOpcode struct {
	name, headers, payload string
	recv                   bool
}

// spec returns the specification's opcodes by code.
func spec(t *testing.T) map[wire.Opcode]specOpcode {
	all := map[wire.Opcode]specOpcode{
		0x64: {"UD_SEND_ONLY", "DETH", "O", true},
		0x65: {"UD_SEND_ONLY_IMM", "DETH,ImmDt", "O", true},
		0x81: {"CNP", "-", "-", false},
		0xCA: {"UDX_WRITE_ONLY", "DETH,RETH", "O", false}, // softrnic's own from here on: docs/ud-rdma.md
		0xCC: {"UDX_READ_REQUEST", "DETH,RETH", "-", false},
		0xD0: {"UDX_READ_RESPONSE", "DETH,RETH", "O", false},
		0xD1: {"UDX_ACKNOWLEDGE", "DETH,AETH,SackETH", "-", false},
		0xD2: {"UDX_ATOMIC_ACKNOWLEDGE", "DETH,AETH,AtomicAckETH", "-", false},
		0xD3: {"UDX_COMPARE_SWAP", "DETH,AtomicETH", "-", false},
		0xD4: {"UDX_FETCH_ADD", "DETH,AtomicETH", "-", false},
		0xF1: {"RC_SELECTIVE_ACKNOWLEDGE", "AETH", "O", false}, // softrnic's own, too: docs/reliability.md
	}
	for line := range strings.Lines(strings.TrimSpace(specOpcodes)) {
		f := strings.Fields(line)
		require.GreaterOrEqual(t, len(f), 4)
		code := wire.Opcode(hexByte(t, f[0]))
		o := specOpcode{"RC_" + f[1], f[2], f[3], len(f) == 5}
		all[code] = o
		if code <= 0x0B { // UC has SEND and WRITE, with the same codes
			o.name = "UC_" + f[1]
			all[0x20|code] = o
		}
	}
	return all
}

func hexByte(t *testing.T, s string) byte {
	t.Helper()
	const digits = "0123456789ABCDEF"
	require.Len(t, s, 2)
	return byte(strings.IndexByte(digits, s[0])<<4 | strings.IndexByte(digits, s[1]))
}

var headerLens = map[string]int{
	"-": 0, "DETH": 8, "FETH": 4, "RETH": 16, "AtomicETH": 28, "AETH": 4, "AtomicAckETH": 8, "SackETH": 8, "ImmDt": 4, "IETH": 4,
}

func headersOf(i *wire.Info) string {
	var h []string
	for _, x := range []struct {
		present bool
		name    string
	}{
		{i.DETH, "DETH"}, {i.FETH, "FETH"}, {i.RETH, "RETH"}, {i.AtomicETH, "AtomicETH"}, {i.AETH, "AETH"},
		{i.AtomicAckETH, "AtomicAckETH"}, {i.SackETH, "SackETH"}, {i.Imm, "ImmDt"}, {i.IETH, "IETH"},
	} {
		if x.present {
			h = append(h, x.name)
		}
	}
	if h == nil {
		return "-"
	}
	return strings.Join(h, ",")
}

func TestOpcodeTable(t *testing.T) {
	want := spec(t)
	require.Len(t, want, 25+12+2+1+7+1)
	payloads := map[string][2]int{"-": {0, 0}, "P": {256, 256}, "L": {1, 256}, "O": {0, 256}, "8": {8, 8}}
	for code := range 256 {
		o := wire.Opcode(code)
		i, w := o.Info(), want[o]
		require.Equal(t, o, i.Opcode)
		if w.name == "" {
			require.False(t, i.Valid, "0x%02x", code)
			continue
		}
		require.True(t, i.Valid, w.name)
		require.Equal(t, w.name, i.Name)
		require.Equal(t, w.name, o.String())
		require.Equal(t, w.headers, headersOf(i), w.name)
		least, most := i.PayloadRange(256)
		require.Equal(t, payloads[w.payload], [2]int{least, most}, w.name)
		require.Equal(t, w.recv, i.ConsumesRecv, w.name)

		length := 12
		for h := range strings.SplitSeq(w.headers, ",") {
			length += headerLens[h]
		}
		if o == wire.CNP {
			length += 16
		}
		require.Equal(t, length, i.HeaderLen, w.name)

		// The name has the remaining properties.
		class, rest, _ := strings.Cut(w.name, "_")
		require.Equal(t, class, i.Class.String())
		require.Equal(t, !strings.Contains(rest, "MIDDLE") && !strings.Contains(rest, "LAST"), i.First, w.name)
		require.Equal(t, !strings.Contains(rest, "MIDDLE") && !strings.Contains(rest, "FIRST"), i.Last, w.name)
		require.Equal(t, strings.Contains(rest, "IMM"), i.Imm, w.name)
		require.Equal(t, strings.Contains(rest, "INV"), i.IETH, w.name)
		require.True(t, strings.HasPrefix(rest, i.Operation.String()) || o == wire.CNP, w.name)
		response := strings.Contains(rest, "RESPONSE") || strings.Contains(rest, "ACKNOWLEDGE")
		require.Equal(t, response, i.Response, w.name)
		require.Equal(t, !response && o != wire.CNP, i.Request, w.name)
	}
}

// TestPacketOverhead checks the bytes from IP header to ICRC around the payload, as captures show
// them.
func TestPacketOverhead(t *testing.T) {
	for o, v4 := range map[wire.Opcode]int{
		wire.RCSendMiddle:     44,
		wire.RCWriteLast:      44,
		wire.RCReadRespMiddle: 44,
		wire.UCSendLastImm:    48,
		wire.RCSendOnlyInv:    48,
		wire.RCReadRespFirst:  48,
		wire.RCAck:            48,
		wire.UDSendOnly:       52,
		wire.RCWriteFirst:     60,
		wire.RCReadRequest:    60,
		wire.CNP:              60,
		wire.RCWriteOnlyImm:   64,
		wire.RCAtomicAck:      56,
		wire.RCCmpSwap:        72,
		wire.RCFlush:          64,
		wire.RCAtomicWrite:    60,
	} {
		require.Equal(t, v4, wire.IPv4Len+wire.UDPLen+o.Info().HeaderLen+wire.ICRCLen, o)
	}
}

// TestCompose checks that Compose is the inverse of the table, and accepts nothing else.
func TestCompose(t *testing.T) {
	for code := range 256 {
		if i := wire.Opcode(code).Info(); i.Valid {
			require.Equal(t, i.Opcode, wire.Compose(i.Class, i.Operation, i.First, i.Last, i.Imm, i.IETH), i.Name)
		}
	}
	found := 0
	for class := range wire.Class(8) {
		for op := range wire.Operation(16) {
			for bits := range 16 {
				first, last, imm, inv := bits&1 != 0, bits&2 != 0, bits&4 != 0, bits&8 != 0
				o := wire.Compose(class, op, first, last, imm, inv)
				i := o.Info()
				if !i.Valid {
					require.Equal(t, wire.NoOpcode, o)
					continue
				}
				found++
				require.Equal(t, []any{class, op, first, last, imm, inv},
					[]any{i.Class, i.Operation, i.First, i.Last, i.Imm, i.IETH})
			}
		}
	}
	require.Equal(t, len(spec(t)), found)
}

func TestNamesOfTheUnknown(t *testing.T) {
	require.Equal(t, "opcode 0x15", wire.Opcode(0x15).String())
	require.Equal(t, "class 9", wire.Class(9).String())
	require.Equal(t, "operation 99", wire.Operation(99).String())
}
