package rdm

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// ServeAddr answers SIDR requests on a port of the connection manager with the
// address of the endpoint, see Resolve. It returns the error of ctx or the
// listener when one of them ends. A nil listener is a verbs.ErrInvalid.
func (e *Endpoint) ServeAddr(ctx context.Context, l *cm.UDListener) error {
	if l == nil {
		return fmt.Errorf("rdm: serve: nil listener: %w", verbs.ErrInvalid)
	}
	private := make([]byte, addrSize)
	e.addr.encode(private)
	for {
		r, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		// A requester that misses the reply retransmits its request.
		_ = r.Accept(cm.UDAcceptOptions{UDQueuePair: cm.UDQueuePair{QP: e.port.QP}, PrivateData: private})
	}
}

// Resolve queries the endpoint that Serve announces at an address and port. The
// error is a verbs.ErrInvalid if the responder is not an Endpoint or m is nil.
func Resolve(ctx context.Context, m *cm.Manager, at netip.AddrPort, o cm.UDDialOptions) (a Addr, err error) {
	if m == nil {
		return a, fmt.Errorf("rdm: resolve %v: nil manager: %w", at, verbs.ErrInvalid)
	}
	p, err := m.DialUD(ctx, at, o)
	if err != nil {
		return a, err
	}
	if len(p.PrivateData) >= addrSize {
		a.decode(p.PrivateData)
	}
	if a.QPN != p.QPN || a.QKey != p.QKey || a.At.Addr() != p.AH.DGID.Addr() {
		return Addr{}, fmt.Errorf("rdm: resolve %v: responder is not an rdm endpoint: %w", at, verbs.ErrInvalid)
	}
	return a, nil
}
