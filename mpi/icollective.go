package mpi

// work is a collective that goes on in a goroutine.
type work struct {
	done bool
	err  error
}

// Ready implements engine.Waitable.
func (w *work) Ready() bool { return w.done }
