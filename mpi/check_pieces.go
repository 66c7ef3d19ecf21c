package mpi

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// Where every two ranks may exchange something else, each tells each what it will
// send, and all then tell all whether that was what they expect.

// blockMismatch is what does not agree at a rank.
type blockMismatch struct {
	Bad            bool
	From           int32
	Sent, Expected typeSignature
}

func (k *call) compareBlocks() error {
	n := k.comm.size
	sent, expected := make([]typeSignature, n), make([]typeSignature, n)
	for r := range n {
		sent[r], expected[r] = typeSignatureOf(k.bufferTo(r)), typeSignatureOf(k.bufferFrom(r))
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
		if sent[r].Count != expected[r].Count || expected[r].acceptSent(sent[r]) != nil {
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
		return fmt.Errorf("%w: %s: %s", ErrMismatch, k.op.callName(), strings.Join(list, "; "))
	}
	return nil
}

// bufferTo is what a rank will get from us.
func (k *call) bufferTo(to int) (b Buffer) {
	o, us := &k.op, k.comm.rank
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

// bufferFrom is what we expect of a rank.
func (k *call) bufferFrom(from int) (b Buffer) {
	o, us := &k.op, k.comm.rank
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
