package rnic

import (
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// roceUDPPort is the default UDP port of an adapter (IBTA volume 1, annex A17).
const roceUDPPort = 4791

// An addressHandle is an address handle. Posted sends do not depend on it any more.
type addressHandle struct {
	pd     *protectionDomain
	attr   verbs.AHAttr
	path   wire.Path
	closed atomic.Bool
}

var _ verbs.AH = (*addressHandle)(nil)

// CreateAH implements verbs.PD. The handle is for UD sends to an adapter or,
// with a multicast DGID, to a group.
func (pd *protectionDomain) CreateAH(attr verbs.AHAttr) (verbs.AH, error) {
	const op = "create AH"
	if err := pd.addRef(kindAH, op); err != nil {
		return nil, err
	}
	attr, path, err := resolveAV(pd.host, attr, op)
	if err != nil {
		pd.release(kindAH)
		return nil, err
	}
	return &addressHandle{pd: pd, attr: attr, path: path}, nil
}

// Attr returns the address vector with defaults filled in.
func (ah *addressHandle) Attr() verbs.AHAttr { return ah.attr }

// Close frees the handle, also while sends that use it are in flight. Close is
// idempotent and returns nil.
func (ah *addressHandle) Close() error {
	if !ah.closed.Swap(true) {
		ah.pd.release(kindAH)
	}
	return nil
}

// resolveAV validates an address vector for op, fills in its defaults and
// returns them with the path. Address handles and connected queue pairs share
// it.
func resolveAV(host pdHost, attr verbs.AHAttr, op string) (verbs.AHAttr, wire.Path, error) {
	setDefault(&attr.PortNum, 1)
	setDefault(&attr.UDPPort, roceUDPPort)
	setDefault(&attr.HopLimit, link.HopLimit)
	attr.FlowLabel &= qp.FlowLabelMask

	refuse := func(detail string, args ...any) (verbs.AHAttr, wire.Path, error) {
		return verbs.AHAttr{}, wire.Path{}, &verbs.OpError{Op: op, Err: verbs.ErrInvalid, Detail: fmt.Sprintf(detail, args...)}
	}
	own, err := host.QueryGID(int(attr.PortNum), attr.SGIDIndex)
	if err != nil {
		return verbs.AHAttr{}, wire.Path{}, &verbs.OpError{Op: op, Err: err}
	}
	from, to := own.GID.Addr(), attr.DGID.Addr()
	switch {
	case to.IsUnspecified():
		return refuse("DGID is not set; give the GID of the peer's adapter")
	case from.Is4() != to.Is4():
		return refuse("DGID %v is an %s address and the local one, GID %d, is %v; open the device on an %[2]s address or use the peer's %[5]s one",
			to, familyName(to), attr.SGIDIndex, from, familyName(from))
	}
	return attr, qp.PathTo(&attr), nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func familyName(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}
