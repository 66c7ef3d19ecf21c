package is

import "github.com/softrnic/softrnic/mpi"

// A sorter is a rank's part of the problem. All memory except for received keys is allocated
// before the iterations. The buffer of received keys grows if an iteration receives more than
// before.
type sorter struct {
	c    *mpi.Comm
	p    problem
	rank int
	keys []int32 // generated keys

	sizes  []int32 // sizes of this rank's buckets, followed by its test keys
	totals []int32 // sums of sizes over all ranks
	next   []int32 // position of the next key of a bucket in sorted
	sorted []int32 // keys by bucket

	out, outAt []int   // number of keys for each rank, and their offset in sorted
	in, inAt   []int   // number of keys of each rank, and their offset in got
	got        []int32 // received keys of this rank's buckets

	least int32   // smallest key of this rank's buckets
	lower int32   // number of keys in buckets of lower ranks
	count []int32 // for each key from least on: number of received keys that are not larger

	passed int // number of passed tests
}

func newSorter(c *mpi.Comm, p problem) *sorter {
	share := 1 << p.keys / c.Size()
	s := &sorter{
		c: c, p: p, rank: c.Rank(),
		keys:   make([]int32, share),
		sizes:  make([]int32, 1<<p.buckets+tests),
		totals: make([]int32, 1<<p.buckets+tests),
		next:   make([]int32, 1<<p.buckets),
		sorted: make([]int32, share),
		out:    make([]int, c.Size()), outAt: make([]int, c.Size()),
		in: make([]int, c.Size()), inAt: make([]int, c.Size()),
		got:   make([]int32, share+share/2),
		count: make([]int32, 1<<p.values),
	}
	p.generateKeys(s.keys, s.rank)
	return s
}

// rankOnce determines the ranks of all keys.
func (s *sorter) rankOnce(i int) error {
	if s.rank == 0 {
		s.keys[i], s.keys[i+iterations] = int32(i), int32(1<<s.p.values-i)
	}
	s.sortIntoBuckets()
	if err := s.c.Allreduce(mpi.Of(s.sizes), mpi.Of(s.totals), mpi.Sum); err != nil {
		return err
	}
	values := s.assignBuckets()
	if err := s.exchangeKeys(); err != nil {
		return err
	}
	s.rankKeys(values)
	s.checkTestKeys(i, values)
	return nil
}

// sortIntoBuckets sorts the keys into buckets.
func (s *sorter) sortIntoBuckets() {
	shift := s.p.values - s.p.buckets
	sizes, rest := s.sizes[:1<<s.p.buckets], s.sizes[1<<s.p.buckets:]
	clear(sizes)
	for _, k := range s.keys {
		sizes[k>>shift]++
	}
	at := int32(0)
	for b, n := range sizes {
		s.next[b] = at
		at += n
	}
	next, sorted := s.next, s.sorted
	for _, k := range s.keys {
		i := &next[k>>shift]
		sorted[*i] = k
		*i++
	}
	for t := range rest { // other ranks contribute 0
		rest[t] = 0
		if i := s.p.tests[t].index - s.rank*len(s.keys); 0 <= i && i < len(s.keys) {
			rest[t] = s.keys[i]
		}
	}
}

// assignBuckets assigns consecutive buckets to each rank, until the ranks up to it have their
// share of the keys. It returns the number of key values in this rank's buckets, starting at
// s.least.
func (s *sorter) assignBuckets() (values int) {
	clear(s.out)
	s.least, s.lower = 0, 0
	width := int32(1) << (s.p.values - s.p.buckets)
	to, total, at := 0, 0, 0
	s.outAt[0] = 0
	for b, n := range s.totals[:1<<s.p.buckets] {
		if to == s.rank {
			values += int(width)
		} else if to < s.rank {
			s.least += width
			s.lower += n
		}
		total += int(n)
		at += int(s.sizes[b])
		s.out[to] += int(s.sizes[b])
		for to < len(s.out)-1 && total >= (to+1)*len(s.keys) { // a large bucket may fill several shares
			to++
			s.outAt[to] = at
		}
	}
	for to++; to < len(s.out); to++ {
		s.outAt[to] = at
	}
	return values
}

// exchangeKeys sends the keys of each bucket to its rank.
func (s *sorter) exchangeKeys() error {
	if err := s.c.Alltoall(mpi.Of(s.out), mpi.Of(s.in)); err != nil {
		return err
	}
	n := 0
	for i, k := range s.in {
		s.inAt[i] = n
		n += k
	}
	if n > cap(s.got) {
		s.got = make([]int32, n+n/4)
	}
	s.got = s.got[:n]
	return s.c.Alltoallv(mpi.Of(s.sorted), s.out, s.outAt, mpi.Of(s.got), s.in, s.inAt)
}

// rankKeys counts the received keys.
func (s *sorter) rankKeys(values int) {
	count, least := s.count[:values], s.least
	clear(count)
	for _, k := range s.got {
		count[k-least]++
	}
	sum := int32(0)
	for i, n := range count {
		sum += n
		count[i] = sum
	}
}

// checkTestKeys verifies the ranks of the test keys in this rank's buckets.
func (s *sorter) checkTestKeys(iteration, values int) {
	for t, k := range s.totals[1<<s.p.buckets:] {
		i := int(k - s.least)
		if i < 0 || i >= values {
			continue
		}
		rank := int(s.lower)
		if i > 0 {
			rank += int(s.count[i-1])
		}
		if rank == s.p.tests[t].wantRank(iteration) {
			s.passed++
		}
	}
}
