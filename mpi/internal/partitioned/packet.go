package partitioned

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/softrnic/softrnic/mpi/internal/datatype"
	"github.com/softrnic/softrnic/mpi/internal/envelope"
	"github.com/softrnic/softrnic/mpi/internal/match"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

// PacketContext is the context id of the packets, and of partitions that are sent as messages. No
// communicator has it.
const PacketContext = 1 << 31

// NoticeFlag marks the notices of partitions. The lower bits are the number of the partition at its
// receiver.
const NoticeFlag = protocol.NoticeLimit / 2

// packetType is the type of a packet, its Tag. Packets are active messages, and ID is the number
// of the sending side.
//
//	packet   Length              payload
//	Offer    bytes               offer: a send was initialized
//	Key      -                   envelope.Key of the memory, whose ID is the first number; also a Start
//	Start    -                   none: the receiver has started another round, to which partitions are written
//	Refuse   bytes of receive    its signature: the two sides do not fit
type packetType int32

const (
	packetOffer packetType = iota + 1
	packetKey
	packetStart
	packetRefuse
)

// Errors of calls, wrapped with the values.
var (
	ErrPartition     = errors.New("mpi: invalid partition")
	ErrPartitionSize = errors.New("mpi: partitioned messages differ in size")
)

// offer is a send that was initialized, at its receiver.
type offer struct {
	id         uint64
	partitions int
	bytes      uint64
	signature  uint64
}

// offerSize is the size of the payload of an Offer in bytes.
const offerSize = 20

// marshalTo encodes an Offer of a send with the context and the tag of e.
func (o *offer) marshalTo(b []byte, e match.Envelope) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], e.Context)
	le.PutUint32(b[4:], uint32(e.Tag))
	le.PutUint32(b[8:], uint32(o.partitions))
	le.PutUint64(b[12:], o.signature)
}

// parseOffer decodes an Offer of a rank.
func parseOffer(from int, h *envelope.Header, b []byte) (o offer, e match.Envelope, err error) {
	if len(b) != offerSize {
		return o, e, fmt.Errorf("%w: offer of %d bytes, want %d", protocol.ErrProtocol, len(b), offerSize)
	}
	le := binary.LittleEndian
	e = match.Envelope{Context: le.Uint32(b[0:]), Source: int32(from), Tag: int32(le.Uint32(b[4:]))}
	o = offer{id: h.ID, partitions: int(le.Uint32(b[8:])), bytes: h.Length, signature: le.Uint64(b[12:])}
	if o.partitions == 0 || o.partitions > maxPartitions || o.bytes%uint64(o.partitions) != 0 {
		return o, e, fmt.Errorf("%w: offer of %d bytes in %d partitions", protocol.ErrProtocol, o.bytes, o.partitions)
	}
	return o, e, nil
}

// compareSides returns an error if a send and a receive do not fit.
func compareSides(sent, received uint64, sentSignature, expected uint64) error {
	switch {
	case sent != received:
		return fmt.Errorf("%w: %d bytes sent, %d received", ErrPartitionSize, sent, received)
	case !datatype.MessagesMatch(sentSignature, expected):
		return fmt.Errorf("%w: %s sent, %s received", datatype.ErrSignature, datatype.DescribeMessage(sentSignature), datatype.DescribeMessage(expected))
	}
	return nil
}
