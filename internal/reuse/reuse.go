// Package reuse keeps memory that is needed for a while for the next user, so that protocol cores,
// which know no other users, neither hold it while they are idle nor allocate it each time. Values
// affect no behaviour: a user initializes those that it gets.
package reuse

import "sync"

// A Pool is a set of values that are not in use. The garbage collector may take them. The zero value
// is empty. A Pool is safe for concurrent use.
type Pool[T any] struct{ pool sync.Pool }

// Get returns a value that was put before, as it was then, or a new one, which is zero.
func (p *Pool[T]) Get() *T {
	if v, ok := p.pool.Get().(*T); ok {
		return v
	}
	return new(T)
}

// Put keeps v, which the caller must not use any more.
func (p *Pool[T]) Put(v *T) { p.pool.Put(v) }
