package mpi

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/coll"
)

// Where every two ranks may exchange something else, each tells each what it will
// send, and all then tell all whether that was what they expect.

// finding is what does not agree at a rank.
type finding struct {
	Bad            bool
	From           int32
	Sent, Expected signature
}

func (k *call) comparePieces() error {
	n := k.comm.size
	sent, expected := make([]signature, n), make([]signature, n)
	for r := range n {
		sent[r], expected[r] = signatureOf(k.gives(r)), signatureOf(k.expects(r))
	}
	send, err := binary.Append(nil, binary.LittleEndian, sent)
	if err != nil {
		return err
	}
	recv := make([]byte, len(send))
	if err := k.do.Alltoall(send, recv); err != nil {
		return err
	}
	if _, err := binary.Decode(recv, binary.LittleEndian, sent); err != nil {
		return err
	}
	var mine finding
	for r := range n {
		if sent[r].Count != expected[r].Count || expected[r].accept(sent[r]) != nil {
			mine = finding{true, int32(r), sent[r], expected[r]}
			break
		}
	}
	all, err := share(k, &mine)
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
		return fmt.Errorf("%w: %s: %s", ErrMismatch, k.op.name(), strings.Join(list, "; "))
	}
	return nil
}

// gives is what a rank will get from us.
func (k *call) gives(to int) (b Buffer) {
	o, us := &k.op, k.comm.rank
	switch o.what {
	case coll.Gatherv:
		if to != o.root {
			return b
		}
		if o.inPlace {
			return o.recv.Slice(0, o.recvParts.counts[us])
		}
		return o.send
	case coll.Scatterv:
		if us != o.root {
			return b
		}
		return o.send.Slice(0, o.sendParts.counts[to])
	case coll.Alltoallv:
		if o.inPlace {
			return k.expects(to)
		}
		return o.send.Slice(0, o.sendParts.counts[to])
	}
	if o.inPlace {
		return k.expects(to)
	}
	return o.sends[to]
}

// expects is what we expect of a rank.
func (k *call) expects(from int) (b Buffer) {
	o, us := &k.op, k.comm.rank
	switch o.what {
	case coll.Gatherv:
		if us != o.root {
			return b
		}
		return o.recv.Slice(0, o.recvParts.counts[from])
	case coll.Scatterv:
		if from != o.root {
			return b
		}
		if o.inPlace {
			return o.send.Slice(0, o.sendParts.counts[us])
		}
		return o.recv
	case coll.Alltoallv:
		return o.recv.Slice(0, o.recvParts.counts[from])
	}
	return o.recvs[from]
}
