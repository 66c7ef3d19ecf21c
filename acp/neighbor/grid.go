package neighbor

import "fmt"

// Grid returns the neighbors of a rank in a grid of ranks with the given lengths, the last of which varies
// fastest, for [Open]. There are two directions in each dimension, down and up: to[2*d] is one step down in
// dimension d, to[2*d+1] one up, and from[i] is the rank that sends in direction i to this one. At an edge
// they are -1, unless the grid is periodic.
//
// It panics if a length is not positive or the rank is not in the grid.
func Grid(rank int, lengths []int, periodic bool) (to, from []int) {
	size := 1
	for _, n := range lengths {
		if n <= 0 {
			panic(fmt.Sprintf("neighbor: grid %v: length %d is not positive", lengths, n))
		}
		size *= n
	}
	if rank < 0 || rank >= size {
		panic(fmt.Sprintf("neighbor: grid %v: rank %d out of range [0, %d)", lengths, rank, size))
	}
	stride := size
	for _, n := range lengths {
		stride /= n
		at := rank / stride % n
		step := func(by int) int {
			next := (at + by + n) % n
			if next != at+by && !periodic {
				return noRank
			}
			return rank + (next-at)*stride
		}
		down, up := step(-1), step(1)
		to = append(to, down, up)
		from = append(from, up, down)
	}
	return to, from
}
