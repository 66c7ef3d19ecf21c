package data

import (
	"maps"
	"slices"

	"github.com/softrnic/softrnic/acp"
)

// wordStore is memory of words, addressed by offset in bytes.
type wordStore interface {
	readWords(off uint64, words []uint64) error
}

// wordCache caches words of a store and collects changes, which are written together.
type wordCache struct {
	from  wordStore
	words map[uint64]uint64
	edits map[uint64]uint64
}

func newWordCache(from wordStore) *wordCache {
	return &wordCache{from: from, words: map[uint64]uint64{}, edits: map[uint64]uint64{}}
}

// fetchWords reads n words ahead. Changed words keep their new values.
func (s *wordCache) fetchWords(off uint64, n int) error {
	w := make([]uint64, n)
	if err := s.from.readWords(off, w); err != nil {
		return err
	}
	for i, v := range w {
		at := off + 8*uint64(i)
		if _, ok := s.edits[at]; !ok {
			s.words[at] = v
		}
	}
	return nil
}

func (s *wordCache) getWord(off uint64) (uint64, error) {
	if _, ok := s.words[off]; !ok {
		if err := s.fetchWords(off, 1); err != nil {
			return 0, err
		}
	}
	return s.words[off], nil
}

// setWord changes a word.
func (s *wordCache) setWord(off, w uint64) { s.words[off], s.edits[off] = w, w }

// remoteStore is a wordStore in memory of any rank.
type remoteStore struct {
	s  *Space
	at acp.GA
}

func (r remoteStore) readWords(off uint64, w []uint64) error {
	return r.s.getWords(r.at+acp.GA(off), w)
}

// pendingWrites returns the writes of changed words; adjacent words share one.
func (r remoteStore) pendingWrites(edits map[uint64]uint64) (pieces []pendingWrite) {
	offs := slices.Sorted(maps.Keys(edits))
	for i, off := range offs {
		if i == 0 || offs[i-1]+8 != off {
			pieces = append(pieces, pendingWrite{to: r.at + acp.GA(off)})
		}
		last := &pieces[len(pieces)-1]
		last.b = append(last.b, wordBytes(edits[off])...)
	}
	return pieces
}
