package cm

// Waiting is the number of requests that Accept would return.
func (l *Listener) Waiting() int {
	l.l.m.mu.Lock()
	defer l.l.m.mu.Unlock()
	return l.l.waiting.Len()
}
