package rnic

import (
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

// Limits of a device. Memory is allocated on use only.
const (
	maxQP        = 1 << 20
	maxQPWR      = 1 << 15
	maxSGE       = 32
	maxInline    = 1024
	maxCQ        = 1 << 20
	maxCQE       = 1 << 22
	maxPD        = 1 << 16
	maxAH        = 1 << 20
	maxSRQ       = 1 << 16
	maxMW        = 1 << 20
	maxMcastGrp  = 8192
	maxMessage   = qp.MaxMessage
	vendorID     = 0xFFFFFF
	gidTableLen  = 1
	pkeyTableLen = 1
)

// deviceAttr describes the device.
func (d *Device) deviceAttr() verbs.DeviceAttr {
	a := verbs.DeviceAttr{
		FWVer:           "1.0.0",
		NodeGUID:        d.guid,
		SysImageGUID:    d.guid,
		VendorID:        vendorID,
		HWVer:           1,
		MaxMRSize:       1 << 62,
		MaxQP:           maxQP,
		MaxQPWR:         maxQPWR,
		MaxSGE:          maxSGE,
		MaxSGERd:        maxSGE,
		MaxCQ:           maxCQ,
		MaxCQE:          maxCQE,
		MaxMR:           maxRegions,
		MaxMW:           maxMW,
		MaxPD:           maxPD,
		MaxAH:           maxAH,
		MaxSRQ:          maxSRQ,
		MaxSRQWR:        maxQPWR,
		MaxSRQSGE:       maxSGE,
		MaxQPRdAtom:     qp.MaxRdAtomic,
		MaxQPInitRdAtom: qp.MaxRdAtomic,
		MaxInlineData:   maxInline,
		MaxMcastGrp:     maxMcastGrp,
		MaxPKeys:        pkeyTableLen,
		PhysPortCnt:     1,
		LocalCAAckDelay: 15,
		AtomicCap:       verbs.AtomicGlob,
		OrderedWrites:   true,
		AtomicWrite:     true,
		FlushGlobal:     true,
	}
	if d.options.Wire == IWARP {
		a.AtomicWrite, a.FlushGlobal, a.MaxAH, a.MaxMcastGrp = false, false, 0, 0
	}
	return a
}
