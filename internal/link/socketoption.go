package link

// socketOption is one setsockopt call.
type socketOption struct {
	name        string // as in the man pages
	level, what int
	value       int
}
