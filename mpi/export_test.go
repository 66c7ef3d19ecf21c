package mpi

import "github.com/softrnic/softrnic/mpi/coll"

// LimitContexts makes room for few communicators.
func (w *World) LimitContexts(n uint64) { w.contexts = newContexts(n) }

// Algorithms are those that were chosen.
func (w *World) Algorithms() coll.Choices { return w.o.Algorithms }
