package mad_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire/mad"
)

// FuzzParse checks that arbitrary bytes do not panic, and that a parsed message survives encoding
// and decoding.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"cm-rping", "rping-active", "perftest-rdmacm", "sidr-ud-perftest"} {
		all, _ := datagrams(f, name)
		for _, b := range all {
			f.Add(b)
		}
	}
	for attr := mad.AttrREQ; attr <= mad.AttrAPR; attr++ {
		var b [mad.Size]byte
		mad.Put(&b, mad.Header{TID: 1, Attr: attr}, &mad.REQ{})
		f.Add(b[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		mad.ParseCMAHeader(b)
		h, body, drop := mad.Parse(b)
		if drop != mad.DropNone {
			require.Nil(t, body)
			require.Less(t, drop, mad.NumDrops)
			return
		}
		var again [mad.Size]byte
		mad.Put(&again, h, body)
		h2, body2, drop := mad.Parse(again[:])
		require.Equal(t, mad.DropNone, drop)
		require.Equal(t, h, h2)
		require.Equal(t, body, body2)
	})
}
