package main

/*
#include "engine.h"
*/
import "C"

import (
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
)

// A domain is a protection domain with its context.
type domain struct {
	verbs.PD
	context *deviceContext
}

// domainOf returns the protection domain of a handle.
func domainOf(handle C.uint32_t) (*domain, C.int) {
	if pd, ok := lookup[*domain](handle); ok {
		return pd, 0
	}
	return nil, errnoOf(errStale)
}

//export go_alloc_pd
func go_alloc_pd(context C.uint32_t, handle *C.uint32_t) C.int {
	defer reportPanic()
	c, errno := contextOf(context)
	if errno != 0 {
		return errno
	}
	pd, err := c.device.AllocPD()
	if err != nil {
		return errnoOf(err)
	}
	return addObject(c, &domain{PD: pd, context: c}, handle)
}

// A region is a memory region whose registration can be replaced.
type region struct {
	verbs.MR
	pd     verbs.PD
	mem    []byte
	iova   uint64
	access verbs.AccessFlags
}

// Close deregisters the region.
func (r *region) Close() error {
	regions.Lock()
	defer regions.Unlock()
	if err := r.MR.Close(); err != nil {
		return err
	}
	delete(regions.byKey, r.LKey())
	return nil
}

// accessFlags converts flags of libibverbs. Optional ones and IBV_ACCESS_HUGETLB (bit 7) change
// nothing here; unknown ones are refused by their bit.
func accessFlags(access C.uint) verbs.AccessFlags {
	return verbs.AccessFlags(access) &^ (1 << 7)
}

// register registers memory of the program, whose addresses for work requests begin at iova.
func register(pd verbs.PD, mem []byte, iova uint64, access verbs.AccessFlags) (verbs.MR, error) {
	if access&verbs.AccessZeroBased == 0 && iova != uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) {
		return pd.RegMRAt(mem, iova, access)
	}
	return pd.RegMR(mem, access)
}

//export go_reg_mr
func go_reg_mr(pd C.uint32_t, addr unsafe.Pointer, length C.size_t, iova C.uint64_t, access C.uint, handle, lkey, rkey *C.uint32_t) C.int {
	defer reportPanic()
	d, errno := domainOf(pd)
	if errno != 0 {
		return errno
	}
	if addr == nil && length > 0 || length > 1<<47 {
		return C.EINVAL
	}
	r := &region{pd: d.PD, mem: unsafe.Slice((*byte)(addr), int(length)), iova: uint64(iova), access: accessFlags(access)}
	mr, err := register(d.PD, r.mem, r.iova, r.access)
	if err != nil {
		return errnoOf(err)
	}
	r.MR = mr
	// Adapters return both keys whatever access the program asked for: it may grant more later.
	*lkey, *rkey = C.uint32_t(mr.LKey()), C.uint32_t(mr.LKey())
	regions.addRegion(r)
	return addObject(d.context, r, handle)
}

// A reregisterer is a region of package rnic whose registration can be replaced under its keys.
type reregisterer interface {
	Reregister(pd verbs.PD, buf []byte, iova uint64, access verbs.AccessFlags) (verbs.MR, error)
}

// go_rereg_mr replaces the registration of a region. Memory nil and access -1 stay as they are.
//
//export go_rereg_mr
func go_rereg_mr(handle, pd C.uint32_t, addr unsafe.Pointer, length C.size_t, access C.int) C.int {
	defer reportPanic()
	r, ok := lookup[*region](handle)
	if !ok {
		return errnoOf(errStale)
	}
	d, errno := domainOf(pd)
	if errno != 0 {
		return errno
	}
	regions.Lock()
	defer regions.Unlock()
	mem, iova, flags := r.mem, r.iova, r.access
	if addr != nil {
		mem, iova = unsafe.Slice((*byte)(addr), int(length)), uint64(uintptr(addr))
	}
	if access >= 0 {
		flags = accessFlags(C.uint(access))
	}
	if flags&verbs.AccessZeroBased != 0 {
		iova = 0
	}
	mr, err := r.MR.(reregisterer).Reregister(d.PD, mem, iova, flags)
	if err != nil {
		return errnoOf(err)
	}
	r.MR, r.pd, r.mem, r.iova, r.access = mr, d.PD, mem, iova, flags
	return 0
}

//export go_alloc_mw
func go_alloc_mw(pd C.uint32_t, type1 C.int, handle, rkey *C.uint32_t) C.int {
	defer reportPanic()
	d, errno := domainOf(pd)
	if errno != 0 {
		return errno
	}
	alloc := d.AllocMW
	if type1 != 0 {
		alloc = d.AllocMWType1
	}
	mw, err := alloc()
	if err != nil {
		return errnoOf(err)
	}
	*rkey = C.uint32_t(mw.RKey())
	return addObject(d.context, mw, handle)
}

// addressOf converts an address vector. Adapters use the low 20 bits of a flow label, and UCX
// sets more.
func addressOf(attr *C.struct_ibv_ah_attr) verbs.AHAttr {
	return verbs.AHAttr{
		DGID:         *(*verbs.GID)(unsafe.Pointer(&attr.grh.dgid)),
		SGIDIndex:    int(attr.grh.sgid_index),
		TrafficClass: uint8(attr.grh.traffic_class),
		FlowLabel:    uint32(attr.grh.flow_label) & 0xfffff,
		HopLimit:     uint8(attr.grh.hop_limit),
		SL:           uint8(attr.sl),
		PortNum:      uint8(attr.port_num),
	}
}

//export go_create_ah
func go_create_ah(pd C.uint32_t, attr *C.struct_ibv_ah_attr, handle *C.uint32_t) C.int {
	defer reportPanic()
	d, errno := domainOf(pd)
	if errno != 0 {
		return errno
	}
	to := addressOf(attr)
	if attr.is_global == 0 { // the local LID: rsockets send datagrams to themselves so
		to.DGID = verbs.GIDFromAddr(d.context.device.Addr().Addr())
	}
	ah, err := d.CreateAH(to)
	if err != nil {
		return errnoOf(err)
	}
	return addObject(d.context, ah, handle)
}
