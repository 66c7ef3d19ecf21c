package acp

import (
	"sync/atomic"

	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// memoryWatch is the set of words that peers write without a signal and the leader waits for. The leader fills
// it with the lock held, and compares it without.
type memoryWatch struct {
	words   []watchedWord
	changed func() bool // reports whether a word has another value than when it was added
}

// watchedWord is a word of registered memory, and its value when it was added.
type watchedWord struct {
	at  *uint64
	was uint64
}

func (w *memoryWatch) reset() {
	clear(w.words) // the memory of released channels
	w.words = w.words[:0]
	if w.changed == nil {
		w.changed = func() bool {
			for _, o := range w.words {
				if atomic.LoadUint64(o.at) != o.was {
					return true
				}
			}
			return false
		}
	}
}

// add adds the word at offset off of registered memory.
func (w *memoryWatch) add(b []byte, off int) {
	at := wordPtr(b, off)
	w.words = append(w.words, watchedWord{at, atomic.LoadUint64(at)})
}

// watchMemory collects the words that this rank waits for. It returns nil if there are none.
func (p *Process) watchMemory() func() bool {
	w := &p.polling.watch
	w.reset()
	if p.barrier.waiting {
		w.add(p.memory.starter.Bytes(), p.barrier.flag)
	}
	if len(p.channels.unmatched) > 0 {
		for i := range crbSlots {
			w.add(p.memory.starter.Bytes(), crbOffset+8*i)
		}
	}
	for _, ch := range p.channels.active {
		if ch.state != released {
			w.add(ch.mem.Bytes(), ch.controlOffset()+ch.awaitedWord())
		}
	}
	if len(w.words) == 0 {
		return nil
	}
	return w.changed
}

// awaitedWord returns the offset in the local control block of the word that the other end writes next, or
// last if it writes several.
func (ch *Channel) awaitedWord() int {
	switch {
	case ch.send == nil:
		return 0
	case ch.state == open:
		return protocol.HeadOffset
	default:
		return protocol.ReplyOffset
	}
}
