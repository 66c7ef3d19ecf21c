package rdmacm_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
)

func listTerms(words ...string) (t oob.Params) {
	for i := 0; i < len(words); i += 2 {
		t.Add(words[i], words[i+1])
	}
	return t
}

// TestTerms checks that parameters fit into private data, which is padded with zeros, also with the
// longest values.
func TestTerms(t *testing.T) {
	for _, terms := range []oob.Params{
		listTerms("test", "rping"),
		listTerms("test", "rping", "-S", "65535", "-C", strconv.Itoa(math.MaxInt)),
		listTerms("test", "ucmatose", "-c", "65536", "-C", "1073741824", "-S", "1073741824"),
	} {
		b := rdmacm.EncodeParams(terms)
		require.LessOrEqual(t, len(b), rdmacm.ParamsLen)
		got, ok := rdmacm.ParseParams(append(b, make([]byte, 100)...))
		require.True(t, ok)
		require.Equal(t, terms, got)
		require.NoError(t, rdmacm.CheckParams(terms, got))
	}
	for _, b := range []string{"", "\x00\x00", "softrnic", "hello", "softrnic 2 rping"} {
		_, ok := rdmacm.ParseParams([]byte(b))
		require.False(t, ok, b)
	}
	err := rdmacm.CheckParams(listTerms("test", "rping", "-S", "64"), listTerms("test", "ucmatose", "-c", "1"))
	require.EqualError(t, err, "test parameters of the two ends differ: test is rping here and ucmatose at the peer")
}
