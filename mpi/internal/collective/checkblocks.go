package collective

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
)

// With calls in which each pair of ranks may exchange another block, each rank sends each other
// rank the type signature of its block. All ranks then exchange the first mismatch.

// blockMismatch is the first block at a rank whose type signature differs from the expected
// one.
type blockMismatch struct {
	Bad            bool
	From           int32
	Sent, Expected datatype.Signature
}

// compareBlocks returns an ErrMismatch at all ranks if a rank sends another the wrong type or
// number of elements.
func (k *call) compareBlocks() error {
	n := k.comm.Size
	sent, expected := make([]datatype.Signature, n), make([]datatype.Signature, n)
	for r := range n {
		sent[r], expected[r] = k.bufferTo(r).Signature().Normalize(), k.bufferFrom(r).Signature().Normalize()
	}
	send, err := binary.Append(nil, binary.LittleEndian, sent)
	if err != nil {
		return err
	}
	recv := make([]byte, len(send))
	if err := k.alg.Alltoall(send, recv); err != nil {
		return err
	}
	if _, err := binary.Decode(recv, binary.LittleEndian, sent); err != nil {
		return err
	}
	var mine blockMismatch
	for r := range n {
		if sent[r].Count != expected[r].Count || expected[r].Accept(sent[r]) != nil {
			mine = blockMismatch{true, int32(r), sent[r], expected[r]}
			break
		}
	}
	all, err := allgatherRecords(k, &mine)
	if err != nil {
		return err
	}
	var list []string
	for r, f := range all {
		if f.Bad && len(list) < maxDifferences {
			list = append(list, fmt.Sprintf("rank %d sends %v to rank %d, which expects %v", f.From, f.Sent, r, f.Expected))
		}
	}
	if list != nil {
		return fmt.Errorf("%w: %s: %s", coll.ErrMismatch, k.op.Name(), strings.Join(list, "; "))
	}
	return nil
}

// bufferTo returns the block that this rank sends to another.
func (k *call) bufferTo(to int) (b datatype.Buffer) {
	o, us := &k.op, k.comm.Rank
	switch o.collective {
	case coll.Gatherv:
		if to != o.root {
			return b
		}
		if o.inPlace {
			return o.recv.Slice(0, o.recvLayout.counts[us])
		}
		return o.send
	case coll.Scatterv:
		if us != o.root {
			return b
		}
		return o.send.Slice(0, o.sendLayout.counts[to])
	case coll.Alltoallv:
		if o.inPlace {
			return k.bufferFrom(to)
		}
		return o.send.Slice(0, o.sendLayout.counts[to])
	}
	if o.inPlace {
		return k.bufferFrom(to)
	}
	return o.sends[to]
}

// bufferFrom returns the block that this rank receives from another.
func (k *call) bufferFrom(from int) (b datatype.Buffer) {
	o, us := &k.op, k.comm.Rank
	switch o.collective {
	case coll.Gatherv:
		if us != o.root {
			return b
		}
		return o.recv.Slice(0, o.recvLayout.counts[from])
	case coll.Scatterv:
		if from != o.root {
			return b
		}
		if o.inPlace {
			return o.send.Slice(0, o.sendLayout.counts[us])
		}
		return o.recv
	case coll.Alltoallv:
		return o.recv.Slice(0, o.recvLayout.counts[from])
	}
	return o.recvs[from]
}
