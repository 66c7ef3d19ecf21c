package rnic

import (
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

const opReregister = "reregister MR"

// Reregister replaces the registration of mr by one of buf in pd, named by addresses
// from iova on, and returns its successor (ibv_rereg_mr(3)). Both keys stay, and requests that name
// them see either the old registration or the new one. mr itself is closed. If Reregister fails, it
// changes nothing: ErrBusy while windows are bound to mr, ErrClosed after Close, and the errors of RegMR.
//
// The method is not part of verbs.MR, as a Go program registers anew.
func (mr *memoryRegion) Reregister(pd verbs.PD, buf []byte, iova uint64, access verbs.AccessFlags) (verbs.MR, error) {
	const op = opReregister
	domain, ok := pd.(*protectionDomain)
	if !ok || domain.host != mr.pd.host {
		return nil, &verbs.OpError{Op: op, Err: verbs.ErrInvalid, Detail: "the protection domain is of another device"}
	}
	access &^= verbs.AccessOptional
	if err := checkRegion(buf, access, domain.host.QueryDevice().MaxMRSize); err != nil {
		err.Op = op
		return nil, err
	}
	if err := checkMemory(buf, access); err != nil {
		err.Op = op
		return nil, err
	}
	if err := domain.addRef(kindMR, op); err != nil {
		return nil, err
	}
	next := &memoryRegion{region: region{key: mr.key, pd: domain, access: access, base: iova, mem: buf[:len(buf):len(buf)]}}
	if err := mr.replaceBy(next); err != nil {
		domain.release(kindMR)
		return nil, err
	}
	mr.pd.host.quiesceShards() // the old memory is not accessed any more
	mr.pd.release(kindMR)
	return next, nil
}

// replaceBy closes mr and stores next under its key.
func (mr *memoryRegion) replaceBy(next *memoryRegion) error {
	const op = opReregister
	mr.mu.Lock()
	defer mr.mu.Unlock()
	object := fmt.Sprintf("MR lkey 0x%x", mr.key)
	switch {
	case mr.closed:
		return &verbs.OpError{Op: op, Object: object, Err: verbs.ErrClosed, Detail: "the region is closed"}
	case mr.windows > 0:
		return &verbs.OpError{Op: op, Object: object, Err: verbs.ErrBusy,
			Detail: fmt.Sprintf("memory windows bound to it: %d; invalidate or close them", mr.windows)}
	}
	mr.closed = true
	mr.pd.keys.replace(&mr.region, &next.region)
	return nil
}
