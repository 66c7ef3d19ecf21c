package rping_test

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rping"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
)

// These are messages and RDMA READ responses of rping of rdma-core 44 on Linux 6.1 with rdma_rxe,
// from captures.
const (
	goldenSource = "000055aada8dc37000000e3400000040"
	goldenSink   = "000055aada8dc55000000dc600000040"
)

var goldenPings = []string{
	"72646d612d70696e672d303a204142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f70717200",
	"72646d612d70696e672d313a2042434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f7071727300",
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func goldenPing(t testing.TB, n int) []byte { return unhex(t, goldenPings[n]) }

func TestInfoOfLinux(t *testing.T) {
	for text, want := range map[string]rping.Info{
		goldenSource: {Addr: 0x55aada8dc370, RKey: 0xe34, Size: 64},
		goldenSink:   {Addr: 0x55aada8dc550, RKey: 0xdc6, Size: 64},
	} {
		got, err := rping.ParseInfo(unhex(t, text))
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, text, hex.EncodeToString(want.Append(nil)))
	}
}

func TestInfo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 2*rping.InfoLen).Draw(t, "message")
		i, err := rping.ParseInfo(b)
		if len(b) != rping.InfoLen {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, b, i.Append(nil))
	})
}

// TestDataOfLinux checks that our client provides the same data, and that our server accepts it
// with Validate.
func TestDataOfLinux(t *testing.T) {
	o := rping.Defaults()
	s := serve(t, o)
	o = towards(t, s.At, o)
	o.Verbose, o.Count = true, 2
	want := ""
	for n := range goldenPings {
		b := goldenPing(t, n)
		want += "ping data: " + string(b[:len(b)-1]) + "\n"
	}
	require.Equal(t, want, run(toolstest.Context(t), o).out)
}
