//go:build !unix || race

package pages

// mapPages returns nil: the system has no mappings, or the race detector must
// see the accesses.
func mapPages(int) (mem []byte, free func()) { return nil, nil }
