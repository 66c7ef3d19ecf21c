package mpi

// LimitContexts makes room for few communicators.
func (w *World) LimitContexts(n uint64) { w.contexts = newContexts(n) }
