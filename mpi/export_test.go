package mpi

import (
	"context"

	"github.com/softrnic/softrnic/mpi/coll"
)

// LimitContexts makes room for few communicators.
func (w *World) LimitContexts(n uint64) { w.contexts = newContexts(n) }

// Algorithms are those that were chosen.
func (w *World) Algorithms() coll.Choices { return w.o.Algorithms }

// Vanish ends the rank's communication without a word to the others.
func (w *World) Vanish() {
	w.windows.stop(w)
	if w.dev != nil {
		_ = w.dev.Close()
		return
	}
	_ = w.eng.Close(context.Background())
}
