package collective

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
)

// checkAgreement compares the call with those of the other ranks, if Options.Check is set.
func (k *execution) checkAgreement() error {
	c := k.comm
	if !c.job.Check {
		return nil
	}
	tag := k.tag
	k.tag |= checkTag
	defer func() { k.tag = tag }()
	mine := k.op.newRecord(k.comm.Size)
	if err := k.compareRecords(&mine); err != nil {
		if k.op.argErr != nil {
			return k.op.argErr
		}
		return err
	}
	switch k.op.collective {
	case coll.Gatherv, coll.Scatterv, coll.Alltoallv, coll.Alltoallw:
		return k.compareBlocks()
	}
	return nil
}

// allgatherRecords exchanges one record of each rank.
func allgatherRecords[T any](k *execution, mine *T) ([]T, error) {
	all := make([]T, k.comm.Size)
	send, err := binary.Append(nil, binary.LittleEndian, mine)
	if err != nil {
		return nil, err
	}
	recv := make([]byte, len(all)*len(send))
	if err := k.alg.Allgather(send, recv); err != nil {
		return nil, err
	}
	_, err = binary.Decode(recv, binary.LittleEndian, all)
	return all, err
}

// compareRecords returns an ErrMismatch if the ranks have different records.
func (k *execution) compareRecords(mine *callRecord) error {
	all, err := allgatherRecords(k, mine)
	if err != nil {
		return err
	}
	ranksByCall := map[callRecord][]int{}
	var order []callRecord
	for r, rec := range all {
		if len(ranksByCall[rec]) == 0 {
			order = append(order, rec)
		}
		ranksByCall[rec] = append(ranksByCall[rec], r)
	}
	if len(order) == 1 && !order[0].Refused {
		return nil
	}
	var list []string
	for _, rec := range order {
		if len(list) == maxDifferences {
			list = append(list, fmt.Sprintf("and %d more", len(order)-len(list)))
			break
		}
		list = append(list, fmt.Sprintf("%s called %v", deadlock.FormatRanks(ranksByCall[rec]), &rec))
	}
	return fmt.Errorf("%w: %s", deadlock.ErrMismatch, strings.Join(list, "; "))
}

// maxDifferences is the maximum number of differences in an error text.
const maxDifferences = 4

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
func (k *execution) compareBlocks() error {
	n := k.comm.Size
	sent, expected := make([]datatype.Signature, n), make([]datatype.Signature, n)
	for r := range n {
		sent[r], expected[r] = k.op.bufferTo(k.comm.Rank, r).Signature().Normalize(), k.op.bufferFrom(k.comm.Rank, r).Signature().Normalize()
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
		return fmt.Errorf("%w: %s: %s", deadlock.ErrMismatch, k.op.Name(), strings.Join(list, "; "))
	}
	return nil
}
