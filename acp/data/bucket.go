package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp"
)

// pair is a key and its value, in memory:
//
//	0    the next pair of the bucket, or Null
//	8    hash of the key
//	16   length of the key in bytes
//	24   length of the value in bytes
//	32   the key, padded to a multiple of 8, and the value
type pair struct {
	at, next   acp.GA
	linkAt     acp.GA // the word that points to it
	key, value []byte
}

const pairSize = 32 // bytes before the key

// valueOffset returns the offset of the value in a pair with a key of the given length.
func valueOffset(key int) int { return pairSize + (key+7)&^7 }

// encodePair returns the memory of a pair.
func encodePair(next acp.GA, hash uint64, key, value []byte) []byte {
	b := append(wordBytes(uint64(next), hash, uint64(len(key)), uint64(len(value))), key...)
	return append(append(b, make([]byte, valueOffset(len(key))-len(b))...), value...)
}

// bucket is a bucket in use by a method.
type bucket struct {
	t    *table
	part acp.GA
	at   acp.GA

	writes  []pendingWrite // written when the lock is released
	garbage []acp.GA       // blocks freed then
}

// hashOf mixes the hash of a key into all bits.
func hashOf(key []byte) uint64 {
	h := hashBytes(key)
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	return h ^ h>>33
}

// bucketFor returns the bucket of the pairs with a hash.
func (t *table) bucketFor(hash uint64) *bucket {
	n := uint64(len(t.parts))
	return t.bucketAt(t.parts[hash%n], hash/n%t.buckets)
}

// bucketAt returns bucket i of a part.
func (t *table) bucketAt(part acp.GA, i uint64) *bucket {
	return &bucket{t: t, part: part, at: part + partHeader + acp.GA(i)*bucketSize}
}

// withLock calls f with the bucket locked, which has kind next afterwards. The pending writes are executed
// unless f returns an error.
func (b *bucket) withLock(ctx context.Context, next kind, f func() error) (err error) {
	s := b.t.s
	mine, err := s.lockStruct(ctx, b.at, kindBucket)
	if err != nil {
		return err
	}
	done := false
	defer func() { // f may panic: it calls the program's function
		if !done {
			err = errors.Join(err, s.unlockStruct(b.at, mine, kindBucket.freeWord()))
		}
	}()
	if err = f(); err != nil {
		return err
	}
	done = true
	err = s.unlockStruct(b.at, mine, next.freeWord(), b.writes...)
	for _, at := range b.garbage {
		if err == nil {
			err = s.free(withoutCancel(ctx), at)
		}
	}
	return err
}

func (b *bucket) addWrite(to acp.GA, p []byte) {
	b.writes = append(b.writes, pendingWrite{to: to, b: p})
}

// addCount adds n to the part's number of pairs.
func (b *bucket) addCount(n int) {
	b.writes = append(b.writes, pendingWrite{to: b.part, add: uint64(n)})
}

// walkPairs calls f with each pair until f returns true. The key and value are read if want returns true.
func (b *bucket) walkPairs(want func(hash uint64, key int) bool, f func(p pair) (stop bool)) error {
	link := b.at.Add(8)
	var first [1]uint64
	if err := b.t.s.getWords(link, first[:]); err != nil {
		return err
	}
	at, mark := acp.GA(first[0]), acp.Null
	for n := 1; at != acp.Null; n++ {
		if at == mark {
			return fmt.Errorf("%w: the pair at %v occurs twice in its bucket", ErrDamaged, at)
		}
		if n&(n-1) == 0 { // cycle detection: a cycle passes some mark again
			mark = at
		}
		p, wanted, err := b.loadPair(at, want)
		if err != nil {
			return err
		}
		p.linkAt = link
		if wanted && f(p) {
			return nil
		}
		link, at = at, p.next // the link is the pair's first word
	}
	return nil
}

// loadPair reads a pair, by one read if its length is known.
func (b *bucket) loadPair(at acp.GA, want func(hash uint64, key int) bool) (p pair, wanted bool, err error) {
	t, n := b.t, pairSize
	if t.key >= 0 && t.value >= 0 {
		n = valueOffset(t.key) + t.value
	}
	mem := make([]byte, n)
	if err = t.s.readBytes(at, mem); err != nil {
		return p, false, err
	}
	w := parseWords(mem[:pairSize])
	if w[2] > maxValue || w[3] > maxValue || t.key >= 0 && w[2] != uint64(t.key) || t.value >= 0 && w[3] != uint64(t.value) {
		return p, false, fmt.Errorf("%w: pair of %d and %d bytes at %v", ErrDamaged, w[2], w[3], at)
	}
	p = pair{at: at, next: acp.GA(w[0])}
	key, value := int(w[2]), int(w[3])
	if !want(w[1], key) {
		return p, false, nil
	}
	if size := valueOffset(key) + value; n < size {
		rest := make([]byte, size-n)
		if err = t.s.readBytes(at.Add(n), rest); err != nil {
			return p, false, err
		}
		mem = append(mem, rest...)
	}
	p.key, p.value = mem[pairSize:][:key], mem[valueOffset(key):]
	return p, true, nil
}

// findPair returns the pair of a key.
func (b *bucket) findPair(key []byte, hash uint64) (found pair, ok bool, err error) {
	err = b.walkPairs(func(h uint64, n int) bool { return h == hash && n == len(key) }, func(p pair) bool {
		if string(p.key) == string(key) {
			found, ok = p, true
		}
		return ok
	})
	return found, ok, err
}

// addPair inserts a pair at the head of the bucket.
func (b *bucket) addPair(ctx context.Context, hash uint64, key, value []byte) error {
	var first [1]uint64
	if err := b.t.s.getWords(b.at.Add(8), first[:]); err != nil {
		return err
	}
	b.addCount(1)
	return b.writePair(ctx, b.at.Add(8), acp.GA(first[0]), hash, key, value)
}

// writePair allocates a block for a pair, and adds the writes of the pair and of the link to it.
func (b *bucket) writePair(ctx context.Context, link, next acp.GA, hash uint64, key, value []byte) error {
	if len(key) > maxValue || len(value) > maxValue {
		return fmt.Errorf("%w: pair of %d and %d bytes", acp.ErrLength, len(key), len(value))
	}
	mem := encodePair(next, hash, key, value)
	at, err := b.t.s.malloc(ctx, b.at.Rank(), len(mem))
	if err == nil {
		b.addWrite(at, mem)
		b.addWrite(link, wordBytes(uint64(at)))
	}
	return err
}

// replaceValue replaces the value of a pair, in place if the length is the same.
func (b *bucket) replaceValue(ctx context.Context, p pair, hash uint64, value []byte) error {
	if len(value) == len(p.value) {
		b.addWrite(p.at.Add(valueOffset(len(p.key))), value)
		return nil
	}
	b.garbage = append(b.garbage, p.at)
	return b.writePair(ctx, p.linkAt, p.next, hash, p.key, value)
}

// removePair unlinks a pair.
func (b *bucket) removePair(p pair) {
	b.addWrite(p.linkAt, wordBytes(uint64(p.next)))
	b.addCount(-1)
	b.garbage = append(b.garbage, p.at)
}

func (b *bucket) allPairs() (list []pair, err error) {
	err = b.walkPairs(func(uint64, int) bool { return true }, func(p pair) bool {
		list = append(list, p)
		return false
	})
	return list, err
}
