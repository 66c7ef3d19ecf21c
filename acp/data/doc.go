// Package data is the middle layer of ACP: memory that is allocated at any rank, and vectors, deques, lists, maps and
// sets in it that all ranks use, by one-sided copies and atomics alone. The program whose memory it is has no part in that.
//
// # Use
//
//	s, err := data.Open(ctx, p, data.Options{Heap: 16 << 20}) // all ranks: each has a heap
//
//	ga, err := s.Malloc(ctx, 3, 1000) // of rank 3's
//	err = s.Free(ctx, ga)             // by whoever
//
//	v, err := data.NewVector[int64](ctx, s, 3, 0)   // lies at rank 3
//	err = v.PushBack(ctx, 1, 2, 3)
//	v, err = data.OpenVector[int64](ctx, s, v.GA()) // at another rank, which was told the address
//	for x, err := range v.All(ctx) {
//
//	l, err := data.NewList[string](ctx, s, 3)
//	e, err := l.On(1).PushBack(ctx, "this element lies at rank 1")
//	e, err = l.Insert(ctx, e, "before that")
//
//	m, err := data.NewMap[string, int](ctx, s, 0, data.MapOptions{}) // over all ranks, by the hash of keys
//	err = m.Update(ctx, "word", func(n int, found bool) int { return n + 1 })
//
//	err = s.Close(ctx) // all ranks
//
// docs/acp.md says what each acp_ function is called here, and how many copies and atomics it is.
//
// # All ranks at once
//
// Every method may be called from all ranks, and by any goroutine, at any time. What it does it does as a whole, as if
// those of others came before or behind it, but for methods All, Local, Len, Clear and Destroy of maps and sets, which go from bucket to bucket. It is
// locked what is used: a heap by Malloc and Free, a vector, deque or list, or one bucket of a map. Addresses that Vector.Address has told are
// the caller's affair.
//
// # Locks
//
// A lock is the first word of a structure, taken and given back by compare-and-swap. Locks are not fair. Who waits looks again after
// pauses of up to a millisecond, until its context ends. Once a method has the lock the context does not end it, for half
// of a change is worse than all of it. A function that is given to Map.Update may panic: the lock is given back.
//
// When the holder of a lock dies, the structure is not what it should be and nobody mends it. Who waits asks a holder that has not moved for
// Options.Patience whether it is there, and if it is not, has a [*LockError] with [ErrHolderLost] that names it. One that is there, but
// holds the same lock for twenty times as long, is [ErrHeld].
//
// # Values
//
// Elements are bytes: those that a value of fixed size has in memory, or those of a string or []byte. Structures
// know their types, by what they are made of and not by name: int32 and float32 are not the same, two structs of an int32 each
// are. The word that is the lock says as well what kind of structure it is, so a wrong address, or one of a structure that was destroyed, is an error
// and does no harm.
package data
