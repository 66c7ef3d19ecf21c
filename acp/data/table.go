package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// table is the implementation of a map: parts at some ranks, each with the same number of buckets, and pairs
// in blocks of their own at the rank of their bucket. The control block, which never changes, contains the
// addresses of the parts:
//
//	0    kindMap, which is locked to destroy the map
//	8    layout hash of the key and value types, 16 and 24 their lengths
//	32   number of parts
//	40   number of buckets of each part
//	48   the addresses of the parts
//
// A part begins with the number of its pairs, which is changed by atomics. Each bucket is two words: its
// lock, and the address of its first pair. So users of different buckets do not contend.
type table struct {
	s          *Space
	ga         acp.GA
	key, value int // bytes, or anySize
	layout     uint64
	parts      []acp.GA
	buckets    uint64 // of a part
}

const (
	tableWords = 6 // of the control block, before the addresses
	partHeader = 16
	bucketSize = 16
	maxBuckets = 1 << 20 // of a part
)

// GA returns the address of the structure, by which other ranks open it.
func (t *table) GA() acp.GA { return t.ga }

func (t *table) String() string { return fmt.Sprintf("map at %v", t.ga) }

func (t *table) newError(op string, err error) error { return t.s.newError(op, t.String(), err) }

// Len returns the number of pairs, or of keys. If some are added or removed concurrently, the number is
// approximate.
func (t *table) Len(context.Context) (int, error) {
	n, err := t.countPairs()
	return n, t.newError("len", err)
}

// Clear removes all pairs, or keys, bucket by bucket.
func (t *table) Clear(ctx context.Context) error {
	return t.newError("clear", t.dropPairs(ctx, kindBucket))
}

// Destroy frees the structure (acp_destroy_map, acp_destroy_set): see Vector.Destroy.
func (t *table) Destroy(ctx context.Context) error { return t.newError("destroy", t.destroyTable(ctx)) }

// createTable allocates a table without pairs.
func (t *table) createTable(ctx context.Context, rank int, o MapOptions) (err error) {
	if err = o.applyDefaults(t.s.p.Size()); err != nil {
		return err
	}
	t.buckets = uint64(o.Buckets)
	defer func() {
		if err != nil {
			for _, part := range append(t.parts, t.ga) {
				if part != acp.Null {
					err = errors.Join(err, t.s.free(withoutCancel(ctx), part))
				}
			}
		}
	}()
	if t.ga, err = t.s.malloc(ctx, rank, 8*(tableWords+len(o.Ranks))); err != nil {
		return err
	}
	fresh := make([]byte, partHeader, partHeader+bucketSize*o.Buckets)
	for range o.Buckets {
		fresh = append(fresh, wordBytes(kindBucket.freeWord(), uint64(acp.Null))...)
	}
	w := []uint64{kindMap.freeWord(), t.layout, uint64(t.key), uint64(t.value), uint64(len(o.Ranks)), t.buckets}
	for _, r := range o.Ranks {
		part, err := t.s.malloc(ctx, r, len(fresh))
		if err != nil {
			return err
		}
		t.parts = append(t.parts, part)
		if err := t.s.writeAll(pendingWrite{to: part, b: fresh}); err != nil {
			return err
		}
		w = append(w, uint64(part))
	}
	return t.s.writeAll(pendingWrite{to: t.ga, b: wordBytes(w...)})
}

// openTable reads the control block.
func (t *table) openTable(ctx context.Context) error {
	mine, err := t.s.lockStruct(ctx, t.ga, kindMap)
	if err != nil {
		return err
	}
	return errors.Join(t.readControl(), t.s.unlockStruct(t.ga, mine, kindMap.freeWord()))
}

// readControl reads the control block, and checks the types and limits.
func (t *table) readControl() error {
	var w [tableWords - 1]uint64
	if err := t.s.getWords(t.ga.Add(8), w[:]); err != nil {
		return err
	}
	switch {
	case w[0] != t.layout || w[1] != uint64(t.key) || w[2] != uint64(t.value):
		return fmt.Errorf("%w: stored keys have %s and values %s, want %s and %s", ErrType,
			sizeString(w[1]), sizeString(w[2]), sizeString(uint64(t.key)), sizeString(uint64(t.value)))
	case w[3] == 0 || w[3] > protocol.MaxRanks || w[4] == 0 || w[4] > maxBuckets:
		return fmt.Errorf("%w: map of %d parts with %d buckets each", ErrDamaged, w[3], w[4])
	}
	parts := make([]uint64, w[3])
	if err := t.s.getWords(t.ga.Add(8*tableWords), parts); err != nil {
		return err
	}
	t.buckets = w[4]
	for _, at := range parts {
		t.parts = append(t.parts, acp.GA(at))
	}
	return nil
}

// countPairs returns the sum of the parts' numbers of pairs.
func (t *table) countPairs() (n int, err error) {
	for _, part := range t.parts {
		w, err := t.s.fetchAdd(part, 0)
		if err != nil {
			return 0, err
		}
		n += int(w)
	}
	return n, nil
}

// dropPairs frees all pairs, and changes the kind of the buckets to next.
func (t *table) dropPairs(ctx context.Context, next kind) error {
	for _, part := range t.parts {
		for i := range t.buckets {
			b := t.bucketAt(part, i)
			err := b.withLock(ctx, next, func() error {
				list, err := b.allPairs()
				if err != nil || len(list) == 0 {
					return err
				}
				for _, p := range list {
					b.garbage = append(b.garbage, p.at)
				}
				b.addWrite(b.at.Add(8), wordBytes(uint64(acp.Null)))
				b.addCount(-len(list))
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// destroyTable waits for the current users of each bucket, and frees the table.
func (t *table) destroyTable(ctx context.Context) error {
	mine, err := t.s.lockStruct(ctx, t.ga, kindMap)
	if err != nil {
		return err
	}
	if err := t.dropPairs(withoutCancel(ctx), kindDead); err != nil {
		return errors.Join(err, t.s.unlockStruct(t.ga, mine, kindMap.freeWord()))
	}
	if err := t.s.unlockStruct(t.ga, mine, kindDead.freeWord()); err != nil {
		return err
	}
	for _, part := range append(t.parts, t.ga) {
		err = errors.Join(err, t.s.free(withoutCancel(ctx), part))
	}
	return err
}
