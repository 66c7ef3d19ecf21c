package rdm

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/internal/datagram"
)

// An Addr is the address of an Endpoint. It contains the Q_Key, which permits
// its holder to send to the endpoint, so it should only be given to trusted
// peers.
type Addr struct {
	At    netip.AddrPort // address of the adapter
	QPN   uint32         // queue pair number
	QKey  uint32         // random; the endpoint drops datagrams with another Q_Key
	Epoch uint32         // incarnation of the endpoint; increases with each restart
	MTU   int            // longest datagram in bytes

	// ID is Options.ID, which identifies the endpoint across restarts.
	ID uint64
}

// newAddr returns the address of the endpoint of a port.
func newAddr(a datagram.Address, id uint64) Addr {
	return Addr{At: a.At, QPN: a.QPN, QKey: a.QKey, Epoch: a.Epoch, MTU: a.MTU, ID: id}
}

// port returns the address of the endpoint's port.
func (a *Addr) port() datagram.Address {
	return datagram.Address{At: a.At, QPN: a.QPN, QKey: a.QKey, Epoch: a.Epoch, MTU: a.MTU}
}

// String returns the address in the form that ParseAddr reads.
func (a Addr) String() string { return a.port().String() + "/" + strconv.FormatUint(a.ID, 16) }

// MarshalText returns String.
func (a Addr) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText parses an address as ParseAddr does.
func (a *Addr) UnmarshalText(text []byte) error {
	parsed, err := ParseAddr(string(text))
	if err == nil {
		*a = parsed
	}
	return err
}

// ParseAddr parses an address as String returns it.
func ParseAddr(s string) (a Addr, err error) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return Addr{}, fmt.Errorf("rdm: parse address %.80q: no endpoint ID", s)
	}
	port, err := datagram.ParseAddress(s[:i])
	if err != nil {
		return Addr{}, fmt.Errorf("rdm: %w", err)
	}
	id, err := strconv.ParseUint(s[i+1:], 16, 64)
	if err != nil {
		return Addr{}, fmt.Errorf("rdm: parse address %.80q: endpoint ID: %w", s, err)
	}
	return newAddr(port, id), nil
}

// addrSize is the length of an encoded address in bytes.
//
//	 0           16     18    20    24     28      32       40
//	+-----------+------+-----+-----+------+-------+--------+
//	| GID       | port | MTU | QPN | Q_Key| epoch | ID     |
//	+-----------+------+-----+-----+------+-------+--------+
const addrSize = 40

func (a *Addr) encode(b []byte) {
	be, gid := binary.BigEndian, a.At.Addr().As16()
	copy(b, gid[:])
	be.PutUint16(b[16:], a.At.Port())
	be.PutUint16(b[18:], uint16(a.MTU))
	be.PutUint32(b[20:], a.QPN)
	be.PutUint32(b[24:], a.QKey)
	be.PutUint32(b[28:], a.Epoch)
	be.PutUint64(b[32:], a.ID)
}

func (a *Addr) decode(b []byte) {
	be := binary.BigEndian
	a.At = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[:16])).Unmap(), be.Uint16(b[16:]))
	a.MTU = int(be.Uint16(b[18:]))
	a.QPN, a.QKey, a.Epoch = be.Uint32(b[20:]), be.Uint32(b[24:]), be.Uint32(b[28:])
	a.ID = be.Uint64(b[32:])
}
