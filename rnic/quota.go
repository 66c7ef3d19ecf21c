package rnic

import (
	"fmt"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// A kind is a kind of object that is limited per device.
type kind uint8

const (
	kindPD kind = iota
	kindCQ
	kindQP
	kindSRQ
	kindMR
	kindMW
	kindAH
	kinds
)

func (k kind) String() string {
	return [...]string{"protection domain", "completion queue", "queue pair", "shared receive queue",
		"memory region", "memory window", "address handle"}[k]
}

// quotas count the objects of a device against its limits. Methods may be
// called from any goroutine.
type quotas struct {
	max  [kinds]int64
	used [kinds]atomic.Int64
}

// newQuotas returns quotas with the limits in a.
func newQuotas(a verbs.DeviceAttr) *quotas {
	return &quotas{max: [kinds]int64{
		kindPD:  int64(a.MaxPD),
		kindCQ:  int64(a.MaxCQ),
		kindQP:  int64(a.MaxQP),
		kindSRQ: int64(a.MaxSRQ),
		kindMR:  int64(a.MaxMR),
		kindMW:  int64(a.MaxMW),
		kindAH:  int64(a.MaxAH),
	}}
}

// reserve counts one more object for op, or returns ErrNoMemory.
func (q *quotas) reserve(k kind, op string) error {
	if q.used[k].Add(1) > q.max[k] {
		q.used[k].Add(-1)
		return &verbs.OpError{Op: op, Err: verbs.ErrNoMemory,
			Detail: fmt.Sprintf("%v: limit of %d reached; close those that are not needed", k, q.max[k])}
	}
	return nil
}

// release undoes reserve.
func (q *quotas) release(k kind) { q.used[k].Add(-1) }

// inUse returns the number of objects.
func (q *quotas) inUse(k kind) int { return int(q.used[k].Load()) }
