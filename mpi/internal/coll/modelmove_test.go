package coll_test

import (
	"bytes"
	"math/rand/v2"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// expectMoved is the model of bcast, gather(v), scatter(v) and allgather(v): all ranks know the
// owner of each block.
func (s scenario) expectMoved(rng *rand.Rand) (e expected) {
	parts, length := make([]coll.Part, s.n), s.n*s.size
	for i := range parts {
		parts[i] = coll.Part{At: i * s.size, Len: s.size}
	}
	switch s.what {
	case coll.Gatherv, coll.Scatterv, coll.Allgatherv:
		parts, length = randomParts(rng, s.n, s.size)
	}
	whole := filled(rng, length)
	before := filled(rng, length) // initial memory of the receivers
	e.results = make([][]byte, s.n)
	gathered := bytes.Clone(before)
	for _, p := range parts {
		copy(partOf(gathered, p), partOf(whole, p))
	}

	switch s.what {
	case coll.Bcast:
		whole = filled(rng, s.size)
		for i := range e.results {
			e.results[i] = whole
		}
		e.call = func(c *coll.Call, rank int) ([]byte, error) {
			buf := make([]byte, s.size)
			if rank == s.root {
				copy(buf, whole)
			}
			return buf, c.Bcast(s.root, buf)
		}
	case coll.Gather, coll.Gatherv:
		e.results[s.root] = gathered
		e.call = func(c *coll.Call, rank int) ([]byte, error) {
			send := bytes.Clone(partOf(whole, parts[rank]))
			var recv []byte
			var p []coll.Part
			if rank == s.root {
				recv, p = bytes.Clone(before), parts
				if s.inPlace {
					copy(partOf(recv, parts[rank]), send)
					send = partOf(recv, parts[rank])
				}
			}
			if s.what == coll.Gather {
				return recv, c.Gather(s.root, send, recv)
			}
			return recv, c.Gatherv(s.root, send, recv, p)
		}
	case coll.Scatter, coll.Scatterv:
		for i, p := range parts {
			e.results[i] = partOf(whole, p)
		}
		e.call = func(c *coll.Call, rank int) ([]byte, error) {
			recv := make([]byte, parts[rank].Len)
			var send []byte
			var p []coll.Part
			if rank == s.root {
				send, p = bytes.Clone(whole), parts
				if s.inPlace {
					recv = partOf(send, parts[rank])
				}
			}
			if s.what == coll.Scatter {
				return recv, c.Scatter(s.root, send, recv)
			}
			return recv, c.Scatterv(s.root, send, p, recv)
		}
	default: // Allgather, Allgatherv
		for i := range e.results {
			e.results[i] = gathered
		}
		e.call = func(c *coll.Call, rank int) ([]byte, error) {
			send, recv := bytes.Clone(partOf(whole, parts[rank])), bytes.Clone(before)
			if s.inPlace {
				copy(partOf(recv, parts[rank]), send)
				send = partOf(recv, parts[rank])
			}
			if s.what == coll.Allgather {
				return recv, c.Allgather(send, recv)
			}
			return recv, c.Allgatherv(send, recv, parts)
		}
	}
	return e
}

// expectAlltoall is the model of the alltoalls: message[i][j] is sent from i to j.
func (s scenario) expectAlltoall(rng *rand.Rand) (e expected) {
	message := make([][][]byte, s.n)
	for i := range message {
		message[i] = make([][]byte, s.n)
		for j := range message[i] {
			n := s.size
			switch {
			case s.what != coll.Alltoall && s.inPlace && j < i:
				n = len(message[j][i]) // as many bytes are received as are sent
			case s.what != coll.Alltoall:
				n = rng.IntN(s.size+1) * rng.IntN(2)
			}
			message[i][j] = filled(rng, n)
		}
	}
	e.results = make([][]byte, s.n)
	for j := range s.n {
		for i := range s.n {
			e.results[j] = append(e.results[j], message[i][j]...)
		}
	}
	gap := rng.IntN(3)
	// lay lays out parts of the given lengths in memory.
	lay := func(list [][]byte) (mem []byte, parts []coll.Part) {
		for _, m := range list {
			parts = append(parts, coll.Part{At: len(mem), Len: len(m)})
			mem = append(append(mem, m...), make([]byte, gap)...)
		}
		return mem, parts
	}
	e.call = func(c *coll.Call, rank int) (result []byte, err error) {
		var incoming [][]byte
		for i := range s.n {
			incoming = append(incoming, make([]byte, len(message[i][rank])))
		}
		if s.what == coll.Alltoall {
			send, recv := bytes.Join(message[rank], nil), bytes.Join(incoming, nil)
			if s.inPlace {
				recv = send
			}
			return recv, c.Alltoall(send, recv)
		}
		sent, sendParts := lay(message[rank])
		recv, recvParts := lay(incoming)
		if s.inPlace {
			recv, recvParts = sent, sendParts
		}
		if s.what == coll.Alltoallv {
			err = c.Alltoallv(sent, sendParts, recv, recvParts)
		} else {
			var out, in [][]byte
			for i := range s.n {
				out, in = append(out, partOf(sent, sendParts[i])), append(in, partOf(recv, recvParts[i]))
			}
			err = c.Alltoallw(out, in)
		}
		for _, p := range recvParts {
			result = append(result, partOf(recv, p)...)
		}
		return result, err
	}
	return e
}
