package frame

// Done returns a channel that is closed when the queue writes no more.
func (q *Queue) Done() <-chan struct{} { return q.q.Done() }
