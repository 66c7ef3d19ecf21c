// Package data is the middle layer of ACP: memory that is allocated at any rank, and vectors in it that every
// rank uses, by one-sided copies and atomics alone.
//
//	s, err := data.Open(ctx, p, data.Options{Heap: 16 << 20}) // all ranks: their heaps
//
//	ga, err := s.Malloc(ctx, 3, 1000) // of rank 3's
//	err = s.Free(ctx, ga)
//
//	v, err := data.NewVector[int64](ctx, s, 3, 0) // lies at rank 3
//	err = v.PushBack(ctx, 1, 2, 3)
//	v, err = data.OpenVector[int64](ctx, s, v.GA()) // at another rank, which was told the address
package data
