package qp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/reliability"
	"github.com/softrnic/softrnic/verbs"
)

// TestUnreliableCompleteOrNone checks that on any network an unreliable message arrives completely or
// not at all; without reordering and duplication at most once and in order; and that all requests
// of the sender complete.
func TestUnreliableCompleteOrNone(t *testing.T) {
	for seed := range uint64(300) {
		for _, typ := range []verbs.QPType{verbs.UC, verbs.UD} {
			t.Run(fmt.Sprint(typ, " seed ", seed), func(t *testing.T) { wholeOrNone(t, typ, seed) })
		}
	}
}

func wholeOrNone(t *testing.T, typ verbs.QPType, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0xdead))
	p := connect(t, ofType(typ), withPSN(uint32(rng.IntN(1<<24))))
	net := &network{rng: rng, now: 1, room: 1 + rng.IntN(3), loss: float64(rng.IntN(3)) / 10}
	if rng.IntN(2) == 0 {
		net.dup, net.reorder = 0.1, 0.2
	}
	const messages, slot = 60, 1000
	grh := 0
	if typ == verbs.UD {
		grh = 40
	}
	sizes := [messages]int{}
	posted, received := 0, 0
	a, b := &end{node: p.a, app: 1}, &end{node: p.b, app: 1}
	net.ends = [2]*end{a, b}
	a.act = func() {
		id := byte(posted)
		n := rng.IntN(800) // several packets on UC
		copy(p.a.buf[posted*slot:], bytes.Repeat([]byte{id}, n))
		wr := p.toPeer(p.send(uint64(id), posted*slot, n))
		wr.Opcode, wr.Imm = verbs.WRSendWithImm, uint32(id)
		sizes[posted] = n
		p.a.post(net.now, wr)
		if posted++; posted < messages {
			a.app = net.now + Time(rng.Int64N(20*reliability.Microsecond)) + 1
		}
	}
	b.act = func() { // fewer receives than messages
		p.b.recv(uint64(received), received*slot, slot)
		if received++; received < messages {
			b.app = net.now + Time(rng.Int64N(21*reliability.Microsecond)) + 1
		}
	}
	for net.step() {
	}
	require.Len(t, p.a.wcs, messages)
	last := -1
	for _, wc := range p.b.wcs {
		require.Equal(t, verbs.WCSuccess, wc.Status)
		id := int(wc.Imm)
		require.EqualValues(t, sizes[id]+grh, wc.ByteLen, "length of message %d", id)
		got := p.b.buf[int(wc.WRID)*slot+grh:][:sizes[id]]
		require.Equal(t, bytes.Repeat([]byte{byte(id)}, sizes[id]), got, "content of message %d", id)
		if net.dup == 0 {
			require.Greater(t, id, last, "order")
		}
		last = id
	}
	if net.loss == 0 && net.dup == 0 {
		require.NotEmpty(t, p.b.wcs)
	}
}
