package data

import (
	"context"
	"iter"

	"github.com/softrnic/softrnic/acp"
)

// Set is a Map of keys alone (acp_set_t).
type Set[K comparable] struct{ m *Map[K, struct{}] }

// NewSet makes a set (acp_create_set): see NewMap.
func NewSet[K comparable](ctx context.Context, s *Space, rank int, o MapOptions) (*Set[K], error) {
	m, err := NewMap[K, struct{}](ctx, s, rank, o)
	if err != nil {
		return nil, err
	}
	return &Set[K]{m}, nil
}

// OpenSet finds the set that another rank has made.
func OpenSet[K comparable](ctx context.Context, s *Space, at acp.GA) (*Set[K], error) {
	m, err := OpenMap[K, struct{}](ctx, s, at)
	if err != nil {
		return nil, err
	}
	return &Set[K]{m}, nil
}

// GA is the address of the set, by which other ranks open it.
func (s *Set[K]) GA() acp.GA { return s.m.GA() }

// Insert adds a key (acp_insert_set), and reports whether it was not there.
func (s *Set[K]) Insert(ctx context.Context, k K) (added bool, err error) {
	return s.m.Insert(ctx, k, struct{}{})
}

// Has reports whether a key is there (acp_find_set).
func (s *Set[K]) Has(ctx context.Context, k K) (found bool, err error) {
	_, found, err = s.m.Find(ctx, k)
	return found, err
}

// Erase takes a key out (acp_remove_set), and reports whether it was there.
func (s *Set[K]) Erase(ctx context.Context, k K) (found bool, err error) { return s.m.Erase(ctx, k) }

// Len is the number of keys: see Map.Len.
func (s *Set[K]) Len(ctx context.Context) (int, error) { return s.m.Len(ctx) }

// All are the keys, as Map.All has them.
func (s *Set[K]) All(ctx context.Context) iter.Seq2[K, error] { return keysOf(s.m.All(ctx)) }

// Local are the keys that lie at this rank.
func (s *Set[K]) Local(ctx context.Context) iter.Seq2[K, error] { return keysOf(s.m.Local(ctx)) }

// Clear takes all keys out.
func (s *Set[K]) Clear(ctx context.Context) error { return s.m.Clear(ctx) }

// Destroy frees the set (acp_destroy_set).
func (s *Set[K]) Destroy(ctx context.Context) error { return s.m.Destroy(ctx) }

func keysOf[K, V any](pairs iter.Seq2[Pair[K, V], error]) iter.Seq2[K, error] {
	return func(yield func(K, error) bool) {
		for p, err := range pairs {
			if !yield(p.Key, err) {
				return
			}
		}
	}
}
