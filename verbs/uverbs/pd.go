//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/verbs"
)

// A handleGuard is the handle of a kernel object, and its end.
type handleGuard struct {
	handle  uint32
	closing sync.Mutex // held by Close
	closed  atomic.Bool
}

// checkOpen returns an error if the object or its device is closed.
func (g *handleGuard) checkOpen(d *device, op string, object fmt.Stringer) error {
	if g.closed.Load() || d.isClosed.Load() {
		return closedError(op, object.String())
	}
	return nil
}

// closeObject calls destroy unless the object is closed, and closes the object if that succeeds. On
// a closed device there is nothing to destroy.
func (g *handleGuard) closeObject(d *device, object fmt.Stringer, destroy func() error) error {
	g.closing.Lock()
	defer g.closing.Unlock()
	if g.closed.Load() || d.isClosed.Load() {
		return nil
	}
	if err := destroy(); err != nil {
		if d.isClosed.Load() {
			return nil
		}
		return opError("close", object.String(), err)
	}
	g.closed.Store(true)
	return nil
}

// A protectionDomain is a verbs.PD.
type protectionDomain struct {
	handleGuard
	dev *device
}

// AllocPD implements verbs.Device.
func (d *device) AllocPD() (verbs.PD, error) {
	const op = "allocate PD"
	if d.isClosed.Load() {
		return nil, closedError(op, d.String())
	}
	var r allocPDResponse
	if err := execute(d.file, cmdAllocPD, &none{}, &r); err != nil {
		return nil, opError(op, d.String(), err)
	}
	return &protectionDomain{dev: d, handleGuard: handleGuard{handle: r.handle}}, nil
}

// String returns the name of the domain for errors.
func (pd *protectionDomain) String() string { return "PD" }

// Close implements verbs.PD.
func (pd *protectionDomain) Close() error {
	return pd.closeObject(pd.dev, pd, func() error {
		return execute(pd.dev.file, cmdDeallocPD, &handleBody{pd.handle}, &none{})
	})
}

// An addressHandle is a verbs.AH.
type addressHandle struct {
	handleGuard
	pd     *protectionDomain
	attr   verbs.AHAttr
	number uint32 // in requests
}

// CreateAH implements verbs.PD.
func (pd *protectionDomain) CreateAH(a verbs.AHAttr) (verbs.AH, error) {
	const op = "create AH"
	if err := pd.checkOpen(pd.dev, op, pd); err != nil {
		return nil, err
	}
	a.PortNum = max(a.PortNum, 1)
	d, err := pd.dev.encodeDestination(op, a)
	if err != nil {
		return nil, err
	}
	body := createAH{pd: pd.handle, attr: ahAttr{dgid: d.dgid, flowLabel: d.flowLabel, sgidIndex: d.sgidIndex, hopLimit: d.hopLimit,
		trafficClass: d.trafficClass, sl: d.sl, global: d.global, port: d.port}}
	var r createAHResponse
	if err := execute(pd.dev.file, cmdCreateAH, &body, &r); err != nil {
		return nil, opError(op, a.DGID.Addr().String(), err)
	}
	h := &addressHandle{pd: pd, attr: a, number: r.number, handleGuard: handleGuard{handle: r.handle}}
	if r.number == 0 {
		err := fmt.Errorf("%w: rxe of this kernel does not number address handles; Linux 5.18 and later do", verbs.ErrUnsupported)
		return nil, errors.Join(&verbs.OpError{Op: op, Err: err}, h.Close())
	}
	return h, nil
}

// encodeDestination returns the kernel's form of an address vector.
func (d *device) encodeDestination(op string, a verbs.AHAttr) (qpDestination, error) {
	limit := int(d.attr.ports)
	switch {
	case a.UDPPort != 0 && a.UDPPort != rocePort:
		return qpDestination{}, &verbs.OpError{Op: op, Object: a.DGID.Addr().String(), Err: verbs.ErrUnsupported,
			Detail: fmt.Sprintf("UDP port %d of the peer: the kernel sends to %d only", a.UDPPort, rocePort)}
	case a.Selective:
		return qpDestination{}, &verbs.OpError{Op: op, Object: a.DGID.Addr().String(), Err: verbs.ErrUnsupported,
			Detail: "selective retransmission needs a softrnic at both ends"}
	case int(a.PortNum) > limit:
		return qpDestination{}, invalidError(op, d.String(), "port %d: want 1 to %d", a.PortNum, limit)
	case a.SGIDIndex < 0 || a.SGIDIndex > 255:
		return qpDestination{}, invalidError(op, d.String(), "SGIDIndex is %d: want 0 to 255", a.SGIDIndex)
	}
	hops := a.HopLimit
	if hops == 0 {
		hops = 64
	}
	return qpDestination{dgid: a.DGID, flowLabel: a.FlowLabel & 0xfffff, sgidIndex: uint8(d.kernelGIDIndex(a.SGIDIndex)), hopLimit: hops,
		trafficClass: a.TrafficClass, sl: a.SL, global: 1, port: a.PortNum}, nil
}

// decodeDestination undoes encodeDestination.
func (d *device) decodeDestination(q *qpDestination) verbs.AHAttr {
	return verbs.AHAttr{DGID: q.dgid, SGIDIndex: d.kernelGIDIndex(int(q.sgidIndex)), TrafficClass: q.trafficClass,
		FlowLabel: q.flowLabel, HopLimit: q.hopLimit, SL: q.sl, PortNum: q.port, UDPPort: rocePort}
}

// String returns the name of the handle for errors.
func (h *addressHandle) String() string { return "AH " + h.attr.DGID.Addr().String() }

// Attr implements verbs.AH.
func (h *addressHandle) Attr() verbs.AHAttr { return h.attr }

// Close implements verbs.AH.
func (h *addressHandle) Close() error {
	return h.closeObject(h.pd.dev, h, func() error {
		return execute(h.pd.dev.file, cmdDestroyAH, &handleBody{h.handle}, &none{})
	})
}
