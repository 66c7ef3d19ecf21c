package frame

// Done returns a channel that is closed when the goroutine has ended.
func (q *Queue) Done() <-chan struct{} { return q.done }
