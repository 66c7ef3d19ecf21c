// Package data is the middle layer of ACP: memory that is allocated at any rank, and vectors, deques, lists, maps and
// sets in it that all ranks share. It uses one-sided copies and atomics only, so the program that owns the memory
// takes no part in the operations.
//
// # Use
//
//	s, err := data.Open(ctx, p, data.Options{Heap: 16 << 20}) // collective: each rank has a heap
//
//	ga, err := s.Malloc(ctx, 3, 1000) // in rank 3's heap
//	err = s.Free(ctx, ga)             // from any rank
//
//	v, err := data.NewVector[int64](ctx, s, 3, 0)   // in rank 3's heap
//	err = v.PushBack(ctx, 1, 2, 3)
//	v, err = data.OpenVector[int64](ctx, s, v.GA()) // at another rank, which has received the address
//	for x, err := range v.All(ctx) {
//
//	l, err := data.NewList[string](ctx, s, 3)
//	e, err := l.On(1).PushBack(ctx, "this element is stored at rank 1")
//	e, err = l.Insert(ctx, e, "before that")
//
//	m, err := data.NewMap[string, int](ctx, s, 0, data.MapOptions{}) // distributed over all ranks by the hash of keys
//	err = m.Update(ctx, "word", func(n int, found bool) int { return n + 1 })
//
//	err = s.Close(ctx) // collective
//
// docs/acp.md maps the acp_ functions to methods of this package, and lists the copies and atomics of each.
//
// # Concurrency
//
// Every method may be called from all ranks and by any goroutine at any time. Methods are atomic with each other, except
// for All, Local, Len, Clear and Destroy of maps and sets, which proceed bucket by bucket. A method locks the structure it
// uses: Malloc and Free a heap, the others a vector, deque or list, or one bucket of a map. Accesses to addresses
// returned by Vector.Address are not synchronized.
//
// # Locks
//
// A lock is the first word of a structure, acquired and released by compare-and-swap. Locks are not fair. A waiter
// retries after pauses of up to a millisecond until its context ends. Once a method has acquired the lock, the end of the
// context does not interrupt it, because a partial change would damage the structure. A function passed to Map.Update
// may panic: the lock is released.
//
// If the holder of a lock dies, the structure may be damaged and is not repaired. A waiter probes a holder whose lock has
// not changed for Options.ProbeDelay. If the holder is lost, the waiter returns a [*LockError] that names it and wraps
// [ErrHolderLost]. If the holder is alive but keeps the same lock for twenty times as long, the error wraps [ErrHeld].
//
// # Values
//
// Elements are stored as bytes: the memory of a value of fixed size, or the contents of a string or []byte. Structures
// record their element type by its layout and not by its name: int32 and float32 differ, two structs of an int32 each do
// not. The lock word also identifies the kind of structure, so the use of a wrong address, or of a destroyed structure,
// returns an error and has no effect.
package data
