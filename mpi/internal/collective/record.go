package collective

import (
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/datatype"
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

// String describes the call.
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

// newRecord returns the record of a call in a communicator of size ranks.
func (o *Op) newRecord(size int) (r callRecord) {
	copy(r.Name[:], o.Name())
	r.Root = -1
	if r.Refused = o.argErr != nil; r.Refused {
		return r
	}
	if shapes[o.collective].rooted {
		r.Root = int32(o.root)
	}
	if shapes[o.collective].op {
		copy(r.Op[:], o.reduceOp.String())
	}
	b, pieces := o.commonBuffer(size)
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
