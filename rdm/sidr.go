package rdm

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Serve tells who asks on a port of the connection manager where the endpoint is,
// by SIDR, until the context ends or the listener is closed, whose errors it
// returns. A nil listener is a verbs.ErrInvalid. See Resolve.
func (e *Endpoint) Serve(ctx context.Context, l *cm.UDListener) error {
	if l == nil {
		return fmt.Errorf("rdm: serve: the listener is nil: %w", verbs.ErrInvalid)
	}
	private := make([]byte, addrSize)
	e.addr.encode(private)
	for {
		r, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		// Who does not wait for the answer any more asks again, or does not.
		_ = r.Accept(cm.UDAcceptOptions{UDQueuePair: cm.UDQueuePair{QP: e.port.QP}, PrivateData: private})
	}
}

// Resolve asks the connection manager of an address and port which endpoint serves
// it. What answers and is none is ErrInvalid, and so is a nil manager.
func Resolve(ctx context.Context, m *cm.Manager, at netip.AddrPort, o cm.UDDialOptions) (a Addr, err error) {
	if m == nil {
		return a, fmt.Errorf("rdm: resolve %v: the manager is nil: %w", at, verbs.ErrInvalid)
	}
	p, err := m.DialUD(ctx, at, o)
	if err != nil {
		return a, err
	}
	if len(p.PrivateData) >= addrSize {
		a.decode(p.PrivateData)
	}
	if a.QPN != p.QPN || a.QKey != p.QKey || a.At.Addr() != p.AH.DGID.Addr() {
		return Addr{}, fmt.Errorf("resolve %v: %w: the queue pair that answers is no endpoint of this kind", at, verbs.ErrInvalid)
	}
	return a, nil
}
