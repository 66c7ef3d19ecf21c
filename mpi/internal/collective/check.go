package collective

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/deadlock"
)

// callRecord holds the arguments of a collective call that must be equal at all ranks. With
// Options.Check the ranks exchange records before they execute the call. Fields that may differ
// are zero.
type callRecord struct {
	Name    [32]byte
	Refused bool // the arguments are invalid
	Root    int32
	Op      [32]byte
	Data    datatype.Signature
	Counts  uint64 // hash of the counts of all ranks
}

// checkAgreement compares the call with those of the other ranks, if Options.Check is set.
func (k *call) checkAgreement() error {
	c := k.comm
	if !c.job.Check {
		return nil
	}
	tag := k.net.tag
	k.net.tag |= checkTag
	defer func() { k.net.tag = tag }()
	mine := k.newRecord()
	if err := k.compareRecords(&mine); err != nil {
		if k.argErr != nil {
			return k.argErr
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
func allgatherRecords[T any](k *call, mine *T) ([]T, error) {
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
func (k *call) compareRecords(mine *callRecord) error {
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
	return fmt.Errorf("%w: %s", coll.ErrMismatch, strings.Join(list, "; "))
}

// maxDifferences is the maximum number of differences in an error text.
const maxDifferences = 4

func (r *callRecord) String() string {
	text := trimNUL(r.Name[:])
	switch {
	case r.Refused:
		return text + " with invalid arguments"
	case r.Data.Count > 0:
		text += " of " + r.Data.String()
	}
	var with []string
	if r.Op[0] != 0 {
		with = append(with, trimNUL(r.Op[:]))
	}
	if r.Root >= 0 {
		with = append(with, fmt.Sprintf("root %d", r.Root))
	}
	if r.Counts != 0 {
		with = append(with, fmt.Sprintf("counts %04x", r.Counts&0xffff))
	}
	if len(with) > 0 {
		text += " with " + strings.Join(with, ", ")
	}
	return text
}

// trimNUL returns the text in a NUL-padded array.
func trimNUL(b []byte) string { return strings.TrimRight(string(b), "\x00") }

// newRecord returns the record of the call.
func (k *call) newRecord() (r callRecord) {
	o := &k.op
	copy(r.Name[:], o.Name())
	r.Root = -1
	if r.Refused = k.argErr != nil; r.Refused {
		return r
	}
	if shapes[o.collective].rooted {
		r.Root = int32(o.root)
	}
	if shapes[o.collective].op {
		copy(r.Op[:], o.reduceOp.String())
	}
	b, pieces := k.commonBuffer()
	if pieces == 0 {
		return r
	}
	r.Data = b.Slice(0, b.Count()/pieces).Signature().Normalize()
	switch o.collective {
	case coll.Allgatherv:
		r.Counts = o.recvLayout.countsHash(b)
		r.Data.Count = 0 // displacements may differ, and so the gaps
	case coll.ReduceScatter:
		r.Counts = o.sendLayout.countsHash(b)
	}
	return r
}

// commonBuffer returns a buffer that has the same size at all ranks, and the number of blocks
// that it consists of, 0 if there is no such buffer.
func (k *call) commonBuffer() (b datatype.Buffer, pieces int) {
	o, n := &k.op, k.comm.Size
	switch {
	case o.grid != nil:
		return o.recv, 2 * len(o.grid.Dims)
	case o.collective == coll.Bcast:
		return o.recv, 1
	case o.collective == coll.Allgatherv:
		return o.recv, 1
	case o.collective == coll.Gather && o.inPlace, o.collective == coll.Allgather && o.inPlace, o.collective == coll.Alltoall:
		return o.recv, n
	case o.collective == coll.Scatter && o.inPlace:
		return o.send, n
	case o.collective == coll.Scatter:
		return o.recv, 1
	case o.collective == coll.Gather, o.collective == coll.Allgather:
		return o.send, 1
	case shapes[o.collective].op:
		return k.reduceBuffer(), 1
	}
	return datatype.Buffer{}, 0
}

// countsHash returns a hash of the counts of all ranks that is not 0.
func (l blockLayout) countsHash(b datatype.Buffer) uint64 {
	unit := 1
	if b.Count() > 0 {
		unit = int(b.Slice(0, 1).Signature().Count)
	}
	h := fnv.New64a()
	for _, n := range l.counts {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], uint64(n*unit))
		h.Write(word[:])
	}
	return h.Sum64() | 1
}
