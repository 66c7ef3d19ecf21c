package data

import (
	"context"
	"iter"

	"github.com/softrnic/softrnic/acp"
)

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
