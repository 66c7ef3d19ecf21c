package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp"
)

// pair is a key and its value, in memory:
//
//	0    the next of the bucket, or Null
//	8    hash of the key
//	16   bytes of the key
//	24   bytes of the value
//	32   the key, and up to the next multiple of 8 the value
type pair struct {
	at, next   acp.GA
	link       acp.GA // the word that it hangs on
	key, value []byte
}

const pairSize = 32 // bytes before the key

func valueAt(key int) int { return pairSize + (key+7)&^7 }

// packPair lays a pair out.
func packPair(next acp.GA, hash uint64, key, value []byte) []byte {
	b := append(wordBytes(uint64(next), hash, uint64(len(key)), uint64(len(value))), key...)
	return append(append(b, make([]byte, valueAt(len(key))-len(b))...), value...)
}

// bucket is one that somebody uses.
type bucket struct {
	t    *table
	part acp.GA
	at   acp.GA

	pieces  []piece  // to be written when the lock is given back
	garbage []acp.GA // to be freed then
}

// hashOf spreads the hash of a key over all bits.
func hashOf(key []byte) uint64 {
	h := hash(key)
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	return h ^ h>>33
}

// bucketOf returns where pairs with a hash are.
func (t *table) bucketOf(hash uint64) *bucket {
	n := uint64(len(t.parts))
	return t.bucketAt(t.parts[hash%n], hash/n%t.buckets)
}

func (t *table) bucketAt(part acp.GA, i uint64) *bucket {
	return &bucket{t: t, part: part, at: part + partHeader + acp.GA(i)*bucketSize}
}

// locked calls f while nobody else uses the bucket, which is of kind next afterwards. What f wants written is, if it has no
// error.
func (b *bucket) locked(ctx context.Context, next kind, f func() error) (err error) {
	s := b.t.s
	mine, err := s.lock(ctx, b.at, kindBucket)
	if err != nil {
		return err
	}
	done := false
	defer func() { // whatever f does, which is the program's
		if !done {
			err = errors.Join(err, s.unlock(b.at, mine, kindBucket.free()))
		}
	}()
	if err = f(); err != nil {
		return err
	}
	done = true
	err = s.unlock(b.at, mine, next.free(), b.pieces...)
	for _, at := range b.garbage {
		if err == nil {
			err = s.free(uncancelled(ctx), at)
		}
	}
	return err
}

func (b *bucket) write(to acp.GA, p []byte) { b.pieces = append(b.pieces, piece{to: to, b: p}) }

// count has the pairs of the part counted.
func (b *bucket) count(n int) { b.pieces = append(b.pieces, piece{to: b.part, add: uint64(n)}) }

// walk calls f with each pair until it returns true, of which key and value are read if want says so.
func (b *bucket) walk(want func(hash uint64, key int) bool, f func(p pair) (stop bool)) error {
	link := b.at.Add(8)
	var first [1]uint64
	if err := b.t.s.getWords(link, first[:]); err != nil {
		return err
	}
	at, mark := acp.GA(first[0]), acp.Null
	for n := 1; at != acp.Null; n++ {
		if at == mark {
			return fmt.Errorf("%w: the pair at %v comes once more in its bucket", ErrDamaged, at)
		}
		if n&(n-1) == 0 { // in a circle some mark is met again
			mark = at
		}
		p, wanted, err := b.load(at, want)
		if err != nil {
			return err
		}
		p.link = link
		if wanted && f(p) {
			return nil
		}
		link, at = at, p.next // the link is a pair's first word
	}
	return nil
}

// load reads a pair, at once if its length is known.
func (b *bucket) load(at acp.GA, want func(hash uint64, key int) bool) (p pair, wanted bool, err error) {
	t, n := b.t, pairSize
	if t.key >= 0 && t.value >= 0 {
		n = valueAt(t.key) + t.value
	}
	mem := make([]byte, n)
	if err = t.s.get(at, mem); err != nil {
		return p, false, err
	}
	w := words(mem[:pairSize])
	if w[2] > maxValue || w[3] > maxValue || t.key >= 0 && w[2] != uint64(t.key) || t.value >= 0 && w[3] != uint64(t.value) {
		return p, false, fmt.Errorf("%w: a key of %d bytes with a value of %d at %v", ErrDamaged, w[2], w[3], at)
	}
	p = pair{at: at, next: acp.GA(w[0])}
	key, value := int(w[2]), int(w[3])
	if !want(w[1], key) {
		return p, false, nil
	}
	if whole := valueAt(key) + value; n < whole {
		rest := make([]byte, whole-n)
		if err = t.s.get(at.Add(n), rest); err != nil {
			return p, false, err
		}
		mem = append(mem, rest...)
	}
	p.key, p.value = mem[pairSize:][:key], mem[valueAt(key):]
	return p, true, nil
}

// find returns the pair of a key.
func (b *bucket) find(key []byte, hash uint64) (found pair, ok bool, err error) {
	err = b.walk(func(h uint64, n int) bool { return h == hash && n == len(key) }, func(p pair) bool {
		if string(p.key) == string(key) {
			found, ok = p, true
		}
		return ok
	})
	return found, ok, err
}

// add makes a pair the first of the bucket.
func (b *bucket) add(ctx context.Context, hash uint64, key, value []byte) error {
	var first [1]uint64
	if err := b.t.s.getWords(b.at.Add(8), first[:]); err != nil {
		return err
	}
	b.count(1)
	return b.place(ctx, b.at.Add(8), acp.GA(first[0]), hash, key, value)
}

// place has a pair written to memory of its own, which hangs on a link.
func (b *bucket) place(ctx context.Context, link, next acp.GA, hash uint64, key, value []byte) error {
	if len(key) > maxValue || len(value) > maxValue {
		return fmt.Errorf("%w: a key of %d bytes with a value of %d", acp.ErrLength, len(key), len(value))
	}
	mem := packPair(next, hash, key, value)
	at, err := b.t.s.malloc(ctx, b.at.Rank(), len(mem))
	if err == nil {
		b.write(at, mem)
		b.write(link, wordBytes(uint64(at)))
	}
	return err
}

// change gives a pair another value, in place if it is as long.
func (b *bucket) change(ctx context.Context, p pair, hash uint64, value []byte) error {
	if len(value) == len(p.value) {
		b.write(p.at.Add(valueAt(len(p.key))), value)
		return nil
	}
	b.garbage = append(b.garbage, p.at)
	return b.place(ctx, p.link, p.next, hash, p.key, value)
}

// remove takes a pair out.
func (b *bucket) remove(p pair) {
	b.write(p.link, wordBytes(uint64(p.next)))
	b.count(-1)
	b.garbage = append(b.garbage, p.at)
}

// pairs are all pairs of a bucket.
func (b *bucket) pairs() (list []pair, err error) {
	err = b.walk(func(uint64, int) bool { return true }, func(p pair) bool {
		list = append(list, p)
		return false
	})
	return list, err
}
