package envelope_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/mpi/internal/envelope"
)

// TestGolden checks the layout of doc.go byte for byte, because ranks of different builds must
// interoperate.
func TestGolden(t *testing.T) {
	for _, g := range []struct {
		h     envelope.Header
		bytes string
	}{
		{envelope.Header{Context: 0x01020304, Tag: 7, Length: 5, ID: 0x1112131415161718, Source: 2, Bytes: 5, Seq: 0xfffffffe,
			Credits: 0x0a0b, Flags: envelope.Synchronous, Kind: envelope.Eager},
			"04030201 07000000 0500000000000000 1817161514131211 02000000 05000000 feffffff 0b0a 01 01"},
		{envelope.Header{Tag: 1<<31 - 1, Length: 1 << 30, ID: 1 << 32, Bytes: 24, Kind: envelope.RTS},
			"00000000 ffffff7f 0000004000000000 0000000001000000 00000000 18000000 00000000 0000 00 02"},
		{envelope.Header{Flags: envelope.ByWrite, Bytes: 24, Kind: envelope.CTS}, strings.Repeat("00", 28) + "18000000 00000000 0000 04 03"},
		{envelope.Header{Bytes: 1, Kind: envelope.Data}, strings.Repeat("00", 28) + "01000000 00000000 0000 00 04"},
		{envelope.Header{Kind: envelope.FIN}, strings.Repeat("00", 39) + "05"},
		{envelope.Header{Kind: envelope.Matched}, strings.Repeat("00", 39) + "06"},
		{envelope.Header{Tag: -1, Flags: envelope.ByCopy, Kind: envelope.Active}, "00000000 ffffffff" + strings.Repeat("00", 30) + "02 07"},
		{envelope.Header{Length: 1, Kind: envelope.Throttle}, strings.Repeat("00", 8) + "01" + strings.Repeat("00", 30) + "08"},
		{envelope.Header{Kind: envelope.Hello}, strings.Repeat("00", 39) + "09"},
		{envelope.Header{Kind: envelope.Credit}, strings.Repeat("00", 39) + "0a"},
		{envelope.Header{Kind: envelope.Bye}, strings.Repeat("00", 39) + "0b"},
	} {
		want, err := hex.DecodeString(strings.ReplaceAll(g.bytes, " ", ""))
		require.NoError(t, err)
		got := make([]byte, envelope.Size)
		g.h.MarshalTo(got)
		require.Equal(t, want, got, "%v", g.h.Kind)
		var h envelope.Header
		require.NoError(t, h.Unmarshal(want))
		require.Equal(t, g.h, h)
	}
	b := make([]byte, envelope.KeySize)
	k := envelope.Key{Addr: 0x0102030405060708, RKey: 0x090a0b0c, Rail: 3, ID: 0x1112131415161718}
	k.MarshalTo(b)
	require.Equal(t, "0807060504030201"+"0c0b0a09"+"03000000"+"1817161514131211", hex.EncodeToString(b))
}

// TestMalformed checks that invalid headers are rejected.
func TestMalformed(t *testing.T) {
	type header = envelope.Header
	for name, h := range map[string]header{
		"EAGER with length 5 and a payload of 4 bytes":    {Kind: envelope.Eager, Length: 5, Bytes: 4},
		"EAGER with flags 0x2":                            {Kind: envelope.Eager, Flags: envelope.ByCopy},
		"EAGER with tag -1":                               {Kind: envelope.Eager, Tag: -1},
		"RTS with tag -2147483648":                        {Kind: envelope.RTS, Tag: math.MinInt32, Bytes: envelope.KeySize},
		"RTS with length 9 and a payload of 23 bytes":     {Kind: envelope.RTS, Length: 9, Bytes: 23},
		"RTS with length 9 and a payload of 0 bytes":      {Kind: envelope.RTS, Length: 9},
		"RTS with length 9 and a payload of 24 bytes":     {Kind: envelope.RTS, Length: 9, Bytes: envelope.KeySize, Flags: envelope.ByCopy},
		"RTS with flags 0x6":                              {Kind: envelope.RTS, Flags: envelope.ByCopy | envelope.ByWrite},
		"CTS with length 9 and a payload of 25 bytes":     {Kind: envelope.CTS, Length: 9, Bytes: 25},
		"CTS with flags 0x1":                              {Kind: envelope.CTS, Flags: envelope.Synchronous, Bytes: envelope.KeySize},
		"DATA with length 9 and a payload of 0 bytes":     {Kind: envelope.Data, Length: 9},
		"FIN with length 0 and a payload of 1 bytes":      {Kind: envelope.FIN, Bytes: 1},
		"MATCHED with length 0 and a payload of 1 bytes":  {Kind: envelope.Matched, Bytes: 1},
		"THROTTLE with length 2 and a payload of 0 bytes": {Kind: envelope.Throttle, Length: 2},
		"unknown kind 0":                                  {},
		"unknown kind 12":                                 {Kind: 12},
		"unknown kind 255":                                {Kind: 255},
		"ACTIVE with flags 0x8":                           {Kind: envelope.Active, Flags: 8},
		"HELLO with flags 0x1":                            {Kind: envelope.Hello, Flags: 1},
		"RTS: message of 18446744073709":                  {Kind: envelope.RTS, Length: math.MaxUint64, Bytes: envelope.KeySize},
		"DATA: message of ":                               {Kind: envelope.Data, Length: envelope.MaxMessage, Bytes: 1},
		"DATA: message of 18446744073709":                 {Kind: envelope.Data, Length: math.MaxUint64, Bytes: 1},
	} {
		b := make([]byte, envelope.Size)
		h.MarshalTo(b)
		err := new(header).Unmarshal(b)
		require.ErrorIs(t, err, envelope.ErrMalformed, name)
		require.ErrorContains(t, err, name)
	}
	err := new(header).Unmarshal(make([]byte, envelope.Size-1))
	require.ErrorIs(t, err, envelope.ErrMalformed)
	for _, n := range []int{0, envelope.KeySize - 1, envelope.KeySize + 1} {
		require.ErrorIs(t, new(envelope.Key).Unmarshal(make([]byte, n)), envelope.ErrMalformed)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), envelope.Size, envelope.Size+8).Draw(t, "bytes")
		if rapid.Bool().Draw(t, "likely") {
			copy(b[8:16], make([]byte, 8)) // Length, Bytes, Flags, Kind
			copy(b[28:32], []byte{rapid.SampledFrom([]byte{0, envelope.KeySize}).Draw(t, "payload"), 0, 0, 0})
			b[38], b[39] = b[38]&7, b[39]%12
		}
		var h envelope.Header
		if h.Unmarshal(b) != nil {
			return
		}
		again := make([]byte, envelope.Size)
		h.MarshalTo(again)
		if string(again) != string(b[:envelope.Size]) {
			t.Fatalf("%x, was %x", again, b)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		k := envelope.Key{Addr: rapid.Uint64().Draw(t, "addr"), RKey: rapid.Uint32().Draw(t, "rkey"), Rail: rapid.Uint32().Draw(t, "rail"), ID: rapid.Uint64().Draw(t, "id")}
		b := make([]byte, envelope.KeySize)
		k.MarshalTo(b)
		var again envelope.Key
		if err := again.Unmarshal(b); err != nil || again != k {
			t.Fatalf("%+v, was %+v: %v", again, k, err)
		}
	})
}

// TestLastWord checks that the last word of the memory changes with every ordered packet, which
// pollers of memory rely on.
func TestLastWord(t *testing.T) {
	a, b := make([]byte, envelope.Size), make([]byte, envelope.Size)
	(&envelope.Header{Kind: envelope.Eager, Seq: 0}).MarshalTo(a)
	(&envelope.Header{Kind: envelope.Eager, Seq: 1}).MarshalTo(b)
	require.NotEqual(t, make([]byte, 8), a[envelope.Size-8:])
	require.NotEqual(t, a[envelope.Size-8:], b[envelope.Size-8:])
}

func TestKinds(t *testing.T) {
	ordered := 0
	for k := envelope.Eager; k <= envelope.Bye; k++ {
		require.NotContains(t, k.String(), "kind")
		if k.Ordered() {
			ordered++
		}
	}
	require.Equal(t, 3, ordered)
	require.Equal(t, "kind 0", envelope.Kind(0).String())
	require.Equal(t, "kind 12", (envelope.Bye + 1).String())
}

// FuzzHeader checks that any bytes are rejected, or are a header that is encoded as it was read.
func FuzzHeader(f *testing.F) {
	for k := envelope.Eager; k <= envelope.Bye; k++ {
		b := make([]byte, envelope.Size)
		(&envelope.Header{Kind: k, Bytes: envelope.KeySize}).MarshalTo(b)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h envelope.Header
		if err := h.Unmarshal(b); err != nil {
			require.ErrorIs(t, err, envelope.ErrMalformed)
			return
		}
		require.LessOrEqual(t, h.Length, uint64(envelope.MaxMessage))
		again := make([]byte, envelope.Size)
		h.MarshalTo(again)
		require.Equal(t, b[:envelope.Size], again)
		if h.Kind == envelope.Data {
			require.Positive(t, int(h.Length)+int(h.Bytes), "fits an int")
		}
	})
}

func BenchmarkHeader(b *testing.B) {
	h, buf := envelope.Header{Kind: envelope.Eager, Length: 8, Bytes: 8, Tag: 3}, make([]byte, envelope.Size)
	for b.Loop() {
		h.MarshalTo(buf)
		if err := h.Unmarshal(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func Example() {
	h := envelope.Header{Kind: envelope.Eager, Context: 4, Tag: 7, Length: 5, Bytes: 5, Source: 1}
	packet := make([]byte, envelope.Size+5)
	h.MarshalTo(packet)
	copy(packet[envelope.Size:], "hello")

	var got envelope.Header
	if err := got.Unmarshal(packet); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%v of rank %d, tag %d: %s\n", got.Kind, got.Source, got.Tag, packet[envelope.Size:][:got.Bytes])

	packet[28] = 6 // Bytes
	fmt.Println(got.Unmarshal(packet))
	// Output:
	// EAGER of rank 1, tag 7: hello
	// mpi: malformed packet: EAGER with length 5 and a payload of 6 bytes
}
