package is

import "github.com/softrnic/softrnic/mpi"

// sorter is a rank's part of the problem. Its memory is allocated before the
// iterations begin, but for keys that come, of which there may once be more than
// ever before.
type sorter struct {
	c    *mpi.Comm
	p    problem
	rank int
	keys []int32 // as they were generated

	sizes  []int32 // of our buckets, and behind them the test keys that are ours
	totals []int32 // of all ranks'
	next   []int32 // where the next key of a bucket goes
	sorted []int32 // our keys by bucket

	out, outAt []int   // keys for each rank, and where in sorted
	in, inAt   []int   // keys of each rank, and where in got
	got        []int32 // keys of our buckets

	least int32   // key of our buckets
	lower int32   // keys of others that are less
	count []int32 // of each key from least on: keys of ours that are not larger

	passed int // tests
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

// rankOnce ranks all keys.
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

// sortIntoBuckets sorts our keys into buckets.
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
	for t := range rest { // everybody else adds 0
		rest[t] = 0
		if i := s.p.tests[t].index - s.rank*len(s.keys); 0 <= i && i < len(s.keys) {
			rest[t] = s.keys[i]
		}
	}
}

// assignBuckets gives each rank buckets that follow one another, until with those of
// the ranks before it has its share. It returns how many values of keys our own
// buckets have, from s.least on.
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
		for to < len(s.out)-1 && total >= (to+1)*len(s.keys) { // a large bucket fills several
			to++
			s.outAt[to] = at
		}
	}
	for to++; to < len(s.out); to++ {
		s.outAt[to] = at
	}
	return values
}

// exchangeKeys gives every rank the keys of its buckets.
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

// rankKeys counts our keys.
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

// checkTestKeys looks at the ranks of the test keys that are in our buckets.
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
