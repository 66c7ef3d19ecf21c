package data

import (
	"maps"
	"slices"

	"github.com/softrnic/softrnic/acp"
)

// store is memory of words, by offset in bytes.
type store interface {
	read(off uint64, words []uint64) error
}

// sheet is words of a store that are read once and changed, to be written together.
type sheet struct {
	from  store
	words map[uint64]uint64
	edits map[uint64]uint64
}

func newSheet(from store) *sheet {
	return &sheet{from: from, words: map[uint64]uint64{}, edits: map[uint64]uint64{}}
}

// fetch reads n words that are wanted soon. Those that have changed stay so.
func (s *sheet) fetch(off uint64, n int) error {
	w := make([]uint64, n)
	if err := s.from.read(off, w); err != nil {
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

// get returns a word.
func (s *sheet) get(off uint64) (uint64, error) {
	if _, ok := s.words[off]; !ok {
		if err := s.fetch(off, 1); err != nil {
			return 0, err
		}
	}
	return s.words[off], nil
}

// set changes a word.
func (s *sheet) set(off, w uint64) { s.words[off], s.edits[off] = w, w }

// remote is a store in memory of any rank.
type remote struct {
	s  *Space
	at acp.GA
}

func (r remote) read(off uint64, w []uint64) error { return r.s.getWords(r.at+acp.GA(off), w) }

// pieces are words to be written, those that are behind one another in one piece.
func (r remote) pieces(edits map[uint64]uint64) (pieces []piece) {
	offs := slices.Sorted(maps.Keys(edits))
	for i, off := range offs {
		if i == 0 || offs[i-1]+8 != off {
			pieces = append(pieces, piece{to: r.at + acp.GA(off)})
		}
		last := &pieces[len(pieces)-1]
		last.b = append(last.b, wordBytes(edits[off])...)
	}
	return pieces
}
