package broker

import (
	"github.com/softrnic/softrnic/wire"
	"github.com/softrnic/softrnic/wire/mad"
)

// Offsets in a packet, from the BTH.
const (
	qpnOffset     = 4                          // word with the destination QPN in the low 24 bits
	madOffset     = wire.BTHLen + wire.DETHLen // of a datagram to QP 1
	classOffset   = madOffset + 1              // management class
	attrOffset    = madOffset + 16             // type of a CM message
	bodyOffset    = madOffset + mad.HeaderLen  // of a CM message
	ownIDOffset   = bodyOffset + 4             // the receiver's communication ID, but in requests
	sidrIDOffset  = bodyOffset                 // the receiver's request ID in a SIDR_REP
	serviceOffset = bodyOffset + 8             // service ID in a REQ and SIDR_REQ, 8 bytes
)

// classCM is the management class of communication management.
const classCM = 7
