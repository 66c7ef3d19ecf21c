package coll_test

import (
	"bytes"
	"math/rand/v2"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// expectReduction is the model of the reductions: from left to right.
func (s scenario) expectReduction(rng *rand.Rand) (e expected) {
	counts := make([]int, s.n) // of ReduceScatter and ReduceScatterBlock, in bytes
	length := s.size * s.op.Size
	switch s.what {
	case coll.ReduceScatter:
		length = 0
		for i := range counts {
			counts[i] = rng.IntN(s.size+1) * s.op.Size
			length += counts[i]
		}
	case coll.ReduceScatterBlock:
		length *= s.n
		for i := range counts {
			counts[i] = s.size * s.op.Size
		}
	}
	vector := make([][]byte, s.n)
	prefix := make([][]byte, s.n)
	for i := range vector {
		for len(vector[i]) < length {
			vector[i] = append(vector[i], s.op.make(rng, i)...)
		}
		prefix[i] = bytes.Clone(vector[i])
		if i > 0 && length > 0 {
			if err := s.op.Reduce(prefix[i], prefix[i-1]); err != nil {
				panic(err)
			}
		}
	}
	total := prefix[s.n-1]
	old := filled(rng, length) // memory of rank 0, which Exscan does not change

	e.results = make([][]byte, s.n)
	at := 0
	for i := range e.results {
		switch s.what {
		case coll.Reduce:
			if i == s.root {
				e.results[i] = total
			}
		case coll.Allreduce:
			e.results[i] = total
		case coll.Scan:
			e.results[i] = prefix[i]
		case coll.Exscan:
			switch {
			case i > 0:
				e.results[i] = prefix[i-1]
			case s.inPlace:
				e.results[i] = vector[0]
			default:
				e.results[i] = old
			}
		default:
			e.results[i] = total[at:][:counts[i]]
			at += counts[i]
		}
	}
	e.call = func(c *coll.Call, rank int) ([]byte, error) {
		send, recv := bytes.Clone(vector[rank]), bytes.Clone(old)
		if s.inPlace {
			recv = send
		}
		switch s.what {
		case coll.Reduce:
			if rank != s.root {
				return nil, c.Reduce(s.root, send, nil, s.op.Reduction)
			}
			return recv, c.Reduce(s.root, send, recv, s.op.Reduction)
		case coll.Allreduce:
			return recv, c.Allreduce(send, recv, s.op.Reduction)
		case coll.Scan:
			return recv, c.Scan(send, recv, s.op.Reduction)
		case coll.Exscan:
			return recv, c.Exscan(send, recv, s.op.Reduction)
		case coll.ReduceScatter:
			return recv[:counts[rank]], c.ReduceScatter(send, recv[:counts[rank]], counts, s.op.Reduction)
		default:
			return recv[:counts[rank]], c.ReduceScatterBlock(send, recv[:counts[rank]], s.op.Reduction)
		}
	}
	return e
}
