package mpi

// Status tells of a message that has been received, or found by Probe
// (MPI_Status).
type Status struct {
	Source    int // rank in the communicator
	Tag       int
	Bytes     int // of the message, or of what there was room for
	Cancelled bool
}

// Count is the number of elements of b's kind in the message, Undefined if it
// is not a whole number of them (MPI_Get_count).
func (s Status) Count(b Buffer) int {
	n := b.ElementSize()
	if n == 0 || s.Bytes%n != 0 {
		return Undefined
	}
	return s.Bytes / n
}
