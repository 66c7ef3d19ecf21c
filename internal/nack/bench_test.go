package nack

import "testing"

// BenchmarkMessage measures a message at both ends together, with its share of acknowledgements and
// without a network.
func BenchmarkMessage(b *testing.B) {
	for _, size := range []int{8, 4000} {
		b.Run(map[int]string{8: "8B", 4000: "4KB"}[size], func(b *testing.B) {
			o := Options{Peers: 1, Epoch: 1, MTU: 4096}
			a, z := New(o), New(o)
			a.OpenPeer(1, 0, Peer{Epoch: 1})
			z.OpenPeer(1, 0, Peer{Epoch: 1})
			body, out, now := make([]byte, size), make([]Packet, 32), Time(1)
			pass := func(from, to *Core) {
				for n := from.Drain(now, out); n > 0; n = from.Drain(now, out) {
					for i := range out[:n] {
						to.HandlePacket(now, 0, out[i].Bytes, func([]byte) {})
						from.ReleaseSlot(out[i].Slot)
					}
				}
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				now += 1000
				if err := a.Send(now, 0, nil, body); err != nil {
					b.Fatal(err)
				}
				pass(a, z)
				pass(z, a)
			}
		})
	}
}
