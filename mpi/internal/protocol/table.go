package protocol

// A requestTable assigns requests numbers that peers can refer to. A stale or invalid
// number finds no request, because each slot has an epoch.
type requestTable struct {
	slots []tableSlot
	free  []uint32
	used  int
}

type tableSlot struct {
	r     *Request
	epoch uint32 // of the current or the last number
}

// add assigns a request a number other than 0, if it has none.
func (t *requestTable) add(r *Request) {
	if r.id != 0 {
		return
	}
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, tableSlot{})
	}
	s := &t.slots[i]
	if s.epoch++; s.epoch == 0 {
		s.epoch = 1
	}
	s.r = r
	r.id = uint64(s.epoch)<<32 | uint64(i)
	t.used++
}

// get returns the request of a number, or nil.
func (t *requestTable) get(id uint64) *Request {
	i := uint32(id)
	if uint64(i) >= uint64(len(t.slots)) || t.slots[i].epoch != uint32(id>>32) {
		return nil
	}
	return t.slots[i].r
}

func (t *requestTable) remove(r *Request) {
	if r.id == 0 {
		return
	}
	i := uint32(r.id)
	t.slots[i].r = nil
	t.free = append(t.free, i)
	r.id = 0
	t.used--
}
