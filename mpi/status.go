package mpi

// Status describes a message that was received or found by Probe (MPI_Status).
type Status struct {
	Source    int // rank in the communicator
	Tag       int
	Bytes     int // length of the message; of a truncated one, length of the buffer
	Cancelled bool
}

// Count returns the number of elements of the kind of b in the message, Undefined if the
// message is not a whole number of them (MPI_Get_count).
func (s Status) Count(b Buffer) int {
	n := b.ElementSize()
	if n == 0 || s.Bytes%n != 0 {
		return Undefined
	}
	return s.Bytes / n
}
