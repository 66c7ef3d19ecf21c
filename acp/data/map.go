package data

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/acp/internal/protocol"
)

// Map is a map that is distributed over ranks by the hash of its keys (acp_map_t). K and V are types of fixed
// size, as for a Vector, or string, and V may be []byte. Keys are compared by their bytes, so they must not
// contain padding or floating-point numbers.
//
// All methods may be called from all ranks concurrently. Methods that take a key are atomic.
type Map[K comparable, V any] struct {
	table
	keys   codec[K]
	values codec[V]
}

// MapOptions configure a map.
type MapOptions struct {
	// Ranks are the ranks that hold parts of the map. Empty means all.
	Ranks []int

	// Buckets is the fixed number of buckets at each of these ranks. 0 means 64. Access to a pair searches
	// one bucket.
	Buckets int
}

// applyDefaults fills in the zero fields, and validates the options.
func (o *MapOptions) applyDefaults(size int) error {
	if len(o.Ranks) == 0 {
		for rank := range size {
			o.Ranks = append(o.Ranks, rank)
		}
	}
	if o.Buckets == 0 {
		o.Buckets = 64
	}
	if o.Buckets < 0 || o.Buckets > maxBuckets || len(o.Ranks) > protocol.MaxRanks {
		return fmt.Errorf("%w: %d map parts of %d buckets, want at most %d parts of %d buckets", acp.ErrOptions, len(o.Ranks), o.Buckets, protocol.MaxRanks, maxBuckets)
	}
	return nil
}

// NewMap creates a map (acp_create_map). Its control block is allocated at rank.
func NewMap[K comparable, V any](ctx context.Context, s *Space, rank int, o MapOptions) (*Map[K, V], error) {
	m, err := mapHandle[K, V](s, acp.Null)
	if err == nil {
		err = m.createTable(ctx, rank, o)
	}
	if err != nil {
		return nil, s.newError("create", fmt.Sprintf("%v at rank %d", reflect.TypeFor[map[K]V](), rank), err)
	}
	return m, nil
}

// OpenMap opens the map at an address.
func OpenMap[K comparable, V any](ctx context.Context, s *Space, at acp.GA) (*Map[K, V], error) {
	m, err := mapHandle[K, V](s, at)
	if err == nil {
		err = m.openTable(ctx)
	}
	if err != nil {
		return nil, s.newError("open", fmt.Sprintf("%v at %v", reflect.TypeFor[map[K]V](), at), err)
	}
	return m, nil
}

// mapHandle returns a handle of the map at an address.
func mapHandle[K comparable, V any](s *Space, at acp.GA) (*Map[K, V], error) {
	k, err := keyCodec[K]()
	if err != nil {
		return nil, err
	}
	v, err := anyCodec[V]()
	return &Map[K, V]{table{s: s, ga: at, key: k.size, value: v.size, layout: 3*k.layout + v.layout}, k, v}, cmp.Or(s.checkUsable(), err)
}

// withPair calls f with the bucket of a key locked, and with the key's pair if it exists.
func (m *Map[K, V]) withPair(ctx context.Context, k K, f func(b *bucket, key []byte, hash uint64, p pair, found bool) error) error {
	key := m.keys.bytesOf(&k)
	h := hashOf(key)
	b := m.bucketFor(h)
	return b.withLock(ctx, kindBucket, func() error {
		p, found, err := b.findPair(key, h)
		if err == nil {
			err = f(b, key, h, p, found)
		}
		return err
	})
}

// Find returns the value of a key (acp_find_map).
func (m *Map[K, V]) Find(ctx context.Context, k K) (v V, found bool, err error) {
	err = m.withPair(ctx, k, func(_ *bucket, _ []byte, _ uint64, p pair, ok bool) error {
		if found = ok; found {
			v = m.values.decodeValue(p.value)
		}
		return nil
	})
	return v, found, m.newError("find", err)
}

// Insert adds a pair unless the key exists (acp_insert_map), and reports whether it did.
func (m *Map[K, V]) Insert(ctx context.Context, k K, v V) (added bool, err error) {
	err = m.withPair(ctx, k, func(b *bucket, key []byte, h uint64, _ pair, found bool) error {
		if found {
			return nil
		}
		added = true
		return b.addPair(ctx, h, key, m.values.bytesOf(&v))
	})
	return added && err == nil, m.newError("insert", err)
}

// Set stores the value of a key, replacing an existing one.
func (m *Map[K, V]) Set(ctx context.Context, k K, v V) error {
	return m.newError("set", m.updatePair(ctx, k, func(V, bool) V { return v }))
}

// Update replaces the value of a key by the result of f, atomically. f is called with the bucket locked, so
// it must be short and must not use the map. If f is nil, Update returns acp.ErrOptions.
func (m *Map[K, V]) Update(ctx context.Context, k K, f func(v V, found bool) V) error {
	if f == nil {
		return m.newError("update", fmt.Errorf("%w: update function is nil", acp.ErrOptions))
	}
	return m.newError("update", m.updatePair(ctx, k, f))
}

// updatePair is Update with a function that is not nil.
func (m *Map[K, V]) updatePair(ctx context.Context, k K, f func(v V, found bool) V) error {
	return m.withPair(ctx, k, func(b *bucket, key []byte, h uint64, p pair, found bool) error {
		var v V
		if found {
			v = m.values.decodeValue(p.value)
		}
		v = f(v, found)
		if found {
			return b.replaceValue(ctx, p, h, m.values.bytesOf(&v))
		}
		return b.addPair(ctx, h, key, m.values.bytesOf(&v))
	})
}

// Erase removes a pair (acp_remove_map), and reports whether it existed.
func (m *Map[K, V]) Erase(ctx context.Context, k K) (found bool, err error) {
	err = m.withPair(ctx, k, func(b *bucket, _ []byte, _ uint64, p pair, ok bool) error {
		if found = ok; found {
			b.removePair(p)
		}
		return nil
	})
	return found, m.newError("erase", err)
}

// Pair is a key and its value.
type Pair[K, V any] struct {
	Key   K
	Value V
}

// All returns an iterator over the pairs, in no particular order. It takes a snapshot of each bucket when it
// reaches it. An error ends the iteration.
func (m *Map[K, V]) All(ctx context.Context) iter.Seq2[Pair[K, V], error] { return m.allPairs(ctx, -1) }

// Local returns an iterator over the pairs that are stored at this rank.
func (m *Map[K, V]) Local(ctx context.Context) iter.Seq2[Pair[K, V], error] {
	return m.allPairs(ctx, m.s.p.Rank())
}

// allPairs returns an iterator over the pairs of the parts at a rank, or of all parts if rank is negative.
func (m *Map[K, V]) allPairs(ctx context.Context, rank int) iter.Seq2[Pair[K, V], error] {
	return func(yield func(Pair[K, V], error) bool) {
		for _, part := range m.parts {
			if rank >= 0 && part.Rank() != rank {
				continue
			}
			for i := range m.buckets {
				b := m.bucketAt(part, i)
				var list []pair
				err := b.withLock(ctx, kindBucket, func() (err error) {
					list, err = b.allPairs()
					return err
				})
				if err != nil {
					yield(Pair[K, V]{}, m.newError("all", err))
					return
				}
				for _, p := range list {
					if !yield(Pair[K, V]{m.keys.decodeValue(p.key), m.values.decodeValue(p.value)}, nil) {
						return
					}
				}
			}
		}
	}
}

// Set is a Map without values (acp_set_t).
type Set[K comparable] struct {
	*table // of m
	m      *Map[K, struct{}]
}

// NewSet creates a set (acp_create_set): see NewMap.
func NewSet[K comparable](ctx context.Context, s *Space, rank int, o MapOptions) (*Set[K], error) {
	m, err := NewMap[K, struct{}](ctx, s, rank, o)
	if err != nil {
		return nil, err
	}
	return &Set[K]{&m.table, m}, nil
}

// OpenSet opens the set at an address.
func OpenSet[K comparable](ctx context.Context, s *Space, at acp.GA) (*Set[K], error) {
	m, err := OpenMap[K, struct{}](ctx, s, at)
	if err != nil {
		return nil, err
	}
	return &Set[K]{&m.table, m}, nil
}

// Insert adds a key (acp_insert_set), and reports whether it was missing.
func (s *Set[K]) Insert(ctx context.Context, k K) (added bool, err error) {
	return s.m.Insert(ctx, k, struct{}{})
}

// Has reports whether a key exists (acp_find_set).
func (s *Set[K]) Has(ctx context.Context, k K) (found bool, err error) {
	_, found, err = s.m.Find(ctx, k)
	return found, err
}

// Erase removes a key (acp_remove_set), and reports whether it existed.
func (s *Set[K]) Erase(ctx context.Context, k K) (found bool, err error) { return s.m.Erase(ctx, k) }

// All returns an iterator over the keys: see Map.All.
func (s *Set[K]) All(ctx context.Context) iter.Seq2[K, error] { return keysOf(s.m.All(ctx)) }

// Local returns an iterator over the keys that are stored at this rank.
func (s *Set[K]) Local(ctx context.Context) iter.Seq2[K, error] { return keysOf(s.m.Local(ctx)) }

// keysOf returns an iterator over the keys of pairs.
func keysOf[K, V any](pairs iter.Seq2[Pair[K, V], error]) iter.Seq2[K, error] {
	return func(yield func(K, error) bool) {
		for p, err := range pairs {
			if !yield(p.Key, err) {
				return
			}
		}
	}
}
