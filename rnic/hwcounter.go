package rnic

// HWCounter returns what the queue pair has counted under a name of
// QPCounters.All, which are rxe's where it has one: "send_rnr_err". It is for
// floors that know package verbs only and look whether a device has more to
// tell; ok is false if there is no such counter.
func (q *QP) HWCounter(name string) (n uint64, ok bool) {
	for info, n := range QPCounters(q.Counters()).All() {
		if info.Name == name {
			return n, true
		}
	}
	return 0, false
}
