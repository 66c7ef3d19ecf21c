package link

// socketOption is one setsockopt call.
type socketOption struct {
	name           string // as in the man pages
	level, optname int
	value          int
}
