//go:build interop && linux

package interop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
	"github.com/softrnic/softrnic/interop/peer"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestSend is the shortest way through everything.
func TestSend(t *testing.T) {
	g := lab.Need(t)
	for _, k := range append(kinds, linuxAlone) {
		for _, f := range families {
			t.Run(k.String()+" "+f.name, func(t *testing.T) {
				a := open(t, g, k.a, f, rnic.Options{}, peer.Options{})
				b := open(t, g, k.b, f, rnic.Options{}, peer.Options{})
				require.NoError(t, peer.Connect(a, b, 1, verbs.ConnectOptions{}))
				require.NoError(t, a.Fill(0, 5000, 7))
				require.NoError(t, b.PostRecv(0, 1, b.SGE(0, 5000)))
				require.NoError(t, a.PostSend(0, verbs.SendWR{WRID: 2, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: a.SGE(0, 5000)}))
				require.NoError(t, poll(t, b, 1)[0].Err())
				require.NoError(t, poll(t, a, 1)[0].Err())
				sum, err := b.Sum(0, 5000)
				require.NoError(t, err)
				require.Equal(t, peer.PatternSum(5000, 7), sum)
			})
		}
	}
}
