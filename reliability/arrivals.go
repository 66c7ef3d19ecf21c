package reliability

import "github.com/softrnic/softrnic/wire"

// An Arrivals is the responder's record of request packets that arrived ahead of
// the expected one. Its zero value has none.
type Arrivals struct {
	have   psnSet
	end    wire.PSN // one past the highest PSN
	recent []wire.PSN
}

// Len returns the number of packets.
func (a *Arrivals) Len() int { return a.have.n }

// Has reports whether p has arrived.
func (a *Arrivals) Has(p wire.PSN) bool { return a.have.has(p) }

// Add records the arrival of p, which is after expected, and reports whether it
// is new. p must be within MaxSpan of expected.
func (a *Arrivals) Add(expected, p wire.PSN) bool {
	a.touch(p &^ 63)
	if a.have.n == 0 || a.end.LessEq(p) {
		a.end = p.Add(1)
	}
	return a.have.add(expected, p)
}

// touch makes the word at p the most recent one.
func (a *Arrivals) touch(p wire.PSN) {
	if len(a.recent) > 0 && a.recent[0] == p {
		return
	}
	i := 1
	for i < len(a.recent) && a.recent[i] != p {
		i++
	}
	if i >= len(a.recent) {
		i = len(a.recent)
		if i < wire.MaxSackBlocks {
			a.recent = append(a.recent, p)
		} else {
			i--
		}
	}
	copy(a.recent[1:i+1], a.recent[:i])
	a.recent[0] = p
}

// Remove removes p and reports whether it had arrived.
func (a *Arrivals) Remove(p wire.PSN) bool { return a.have.remove(p) }

// Report adds the blocks of a selective acknowledgement, the most recent arrivals
// first.
func (a *Arrivals) Report(expected wire.PSN, s *wire.SelectiveAck) {
	kept := a.recent[:0]
	for _, p := range a.recent {
		if !expected.Less(p.Add(64)) || !p.Less(a.end) {
			continue
		}
		if w := a.have.word(p); w != 0 {
			s.Blocks = append(s.Blocks, wire.SackBlock{PSN: p, Arrived: w})
			kept = append(kept, p)
		}
	}
	a.recent = kept
}

// Reset forgets all arrivals.
func (a *Arrivals) Reset() {
	a.have.reset()
	a.recent = a.recent[:0]
}
