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

const (
	pairSize    = 32      // bytes before the key
	maxInBucket = 1 << 20 // pairs
)

func valueAt(key int) int { return pairSize + (key+7)&^7 }

// packPair lays a pair out.
func packPair(next acp.GA, hash uint64, key, value []byte) []byte {
	b := append(wordBytes(uint64(next), hash, uint64(len(key)), uint64(len(value))), key...)
	return append(append(b, make([]byte, valueAt(len(key))-len(b))...), value...)
}

// bucket is one whose lock is held.
type bucket struct {
	t    *table
	part acp.GA
	at   acp.GA
}

// hashOf spreads the hash of a key over all bits.
func hashOf(key []byte) uint64 {
	h := hash(key)
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	return h ^ h>>33
}

// bucketOf returns where pairs with a hash are.
func (t *table) bucketOf(hash uint64) bucket {
	n := uint64(len(t.parts))
	return t.bucketAt(t.parts[hash%n], hash/n%t.buckets)
}

func (t *table) bucketAt(part acp.GA, i uint64) bucket {
	return bucket{t, part, part + partHeader + acp.GA(i)*bucketSize}
}

// locked calls f while nobody else uses the bucket, and leaves it with the word that f returns.
func (b bucket) locked(ctx context.Context, f func() (next kind, err error)) (err error) {
	mine, err := b.t.s.lock(ctx, b.at, kindBucket)
	if err != nil {
		return err
	}
	next := kindBucket
	defer func() { err = errors.Join(err, b.t.s.unlock(b.at, mine, next.free())) }() // whatever f does
	after, err := f()
	if err == nil {
		next = after
	}
	return err
}

// walk calls f with each pair until it returns true, of which key and value are read if want says so.
func (b bucket) walk(want func(hash uint64, key int) bool, f func(p pair) (stop bool)) error {
	link := b.at.Add(8)
	var first [1]uint64
	if err := b.t.s.getWords(link, first[:]); err != nil {
		return err
	}
	at := acp.GA(first[0])
	for n := 0; at != acp.Null; n++ {
		if n == maxInBucket {
			return fmt.Errorf("%w: a bucket of more than %d pairs", ErrDamaged, n)
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
func (b bucket) load(at acp.GA, want func(hash uint64, key int) bool) (p pair, wanted bool, err error) {
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
func (b bucket) find(key []byte, hash uint64) (found pair, ok bool, err error) {
	err = b.walk(func(h uint64, n int) bool { return h == hash && n == len(key) }, func(p pair) bool {
		if string(p.key) == string(key) {
			found, ok = p, true
		}
		return ok
	})
	return found, ok, err
}

// add makes a pair the first of the bucket.
func (b bucket) add(ctx context.Context, hash uint64, key, value []byte) error {
	var first [1]uint64
	if err := b.t.s.getWords(b.at.Add(8), first[:]); err != nil {
		return err
	}
	at, err := b.place(ctx, acp.GA(first[0]), hash, key, value)
	if err != nil {
		return err
	}
	if err := b.t.s.put(piece{b.at.Add(8), wordBytes(uint64(at))}); err != nil {
		return err
	}
	_, err = b.t.s.add(b.part, 1)
	return err
}

// place writes a pair to memory of its own.
func (b bucket) place(ctx context.Context, next acp.GA, hash uint64, key, value []byte) (acp.GA, error) {
	if len(key) > maxValue || len(value) > maxValue {
		return acp.Null, fmt.Errorf("%w: a key of %d bytes with a value of %d", acp.ErrLength, len(key), len(value))
	}
	mem := packPair(next, hash, key, value)
	at, err := b.t.s.malloc(ctx, b.at.Rank(), len(mem))
	if err != nil {
		return acp.Null, err
	}
	return at, b.t.s.put(piece{at, mem})
}

// change gives a pair another value, in place if it is as long.
func (b bucket) change(ctx context.Context, p pair, hash uint64, value []byte) error {
	if len(value) == len(p.value) {
		return b.t.s.put(piece{p.at.Add(valueAt(len(p.key))), value})
	}
	at, err := b.place(ctx, p.next, hash, p.key, value)
	if err != nil {
		return err
	}
	if err := b.t.s.put(piece{p.link, wordBytes(uint64(at))}); err != nil {
		return err
	}
	return b.t.s.free(context.WithoutCancel(ctx), p.at)
}

// remove takes a pair out.
func (b bucket) remove(ctx context.Context, p pair) error {
	if err := b.t.s.put(piece{p.link, wordBytes(uint64(p.next))}); err != nil {
		return err
	}
	if _, err := b.t.s.add(b.part, ^uint64(0)); err != nil {
		return err
	}
	return b.t.s.free(context.WithoutCancel(ctx), p.at)
}

// pairs are all pairs of a bucket.
func (b bucket) pairs() (list []pair, err error) {
	err = b.walk(func(uint64, int) bool { return true }, func(p pair) bool {
		list = append(list, p)
		return false
	})
	return list, err
}
