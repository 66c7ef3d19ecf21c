package link

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDatagramPackets(t *testing.T) {
	buf := []byte("aaaabbbbcc")
	tests := []struct {
		name string
		d    Datagram
		want []string
	}{
		{"several, the last shorter", Datagram{Buf: buf, Seg: 4}, []string{"aaaa", "bbbb", "cc"}},
		{"several, all equal", Datagram{Buf: buf[:8], Seg: 4}, []string{"aaaa", "bbbb"}},
		{"one", Datagram{Buf: buf, Seg: 10}, []string{"aaaabbbbcc"}},
		{"segments larger than the buffer", Datagram{Buf: buf, Seg: 20}, []string{"aaaabbbbcc"}},
		{"no segment size", Datagram{Buf: buf}, []string{"aaaabbbbcc"}},
		{"empty", Datagram{}, []string{""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for i := range test.d.Count() {
				got = append(got, string(test.d.Packet(i)))
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestDatagramsSlots(t *testing.T) {
	r := NewDatagrams(2)
	require.Equal(t, 2, r.Cap())
	require.Nil(t, r.slots[0], "no memory before the first use")
	first := r.Slot(0)
	require.Len(t, first, 1<<16)
	require.Nil(t, r.slots[1])

	r.Add(Datagram{Buf: first[:3]})
	require.False(t, r.Full())
	r.Add(Datagram{Buf: r.Slot(1)[:4]})
	require.True(t, r.Full())
	require.Len(t, r.Msgs(), 2)
	require.Len(t, r.Msgs()[1].Buf, 4)
	require.Panics(t, func() { r.Add(Datagram{}) })

	r.Reset()
	require.Empty(t, r.Msgs())
	require.Same(t, &first[0], &r.Slot(0)[0], "the memory stays")
}
