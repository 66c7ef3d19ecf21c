package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/verbs"
)

// ErrPeerExited reports that no process listens at the address of the peer's adapter any more. It
// is wrapped with the peer's address and the system's reason.
var ErrPeerExited = errors.New("peer process has exited")

const (
	probeInterval    = time.Second / 2 // between two probes of an adapter without progress
	maxRefusedProbes = 2               // consecutive refused probes after which the peer counts as exited; one may overtake its last message
	probePort        = 1               // a port of RDMA-CM that no program serves
)

// WatchPeer calls gone, once, when the peer's system refuses two consecutive probes of its
// adapter. A process that is killed sends nothing, so after each probeInterval without progress
// WatchPeer sends a SIDR request for a service that no program has. Any reply, and silence too,
// counts as liveness. progress returns a counter that changes with progress; it may be nil. stop
// ends the watch and waits for it.
func WatchPeer(ctx context.Context, m *cm.Manager, adapter netip.AddrPort, progress func() uint64, onLost func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(probeInterval)
		defer ticker.Stop()
		var last uint64
		for refused := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if progress != nil {
				if now := progress(); now != last {
					last, refused = now, 0
					continue
				}
			}
			cause := probePeer(ctx, m, adapter)
			if cause == nil {
				refused = 0
			} else if refused++; refused == maxRefusedProbes {
				onLost(fmt.Errorf("peer %v: %w: %w", adapter, ErrPeerExited, cause))
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// probePeer sends a liveness probe to the connection manager of an adapter. It returns the
// system's refusal to deliver it, or nil.
func probePeer(ctx context.Context, m *cm.Manager, adapter netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, probeInterval)
	defer cancel()
	_, err := m.DialUD(ctx, netip.AddrPortFrom(adapter.Addr(), probePort), cm.UDDialOptions{UDPPort: adapter.Port()})
	var refused *verbs.RefusedError
	if errors.As(err, &refused) && !refused.Transient() {
		return refused
	}
	return nil
}

// AdapterAddr returns the address and UDP port of the adapter that an address vector leads to.
func AdapterAddr(a verbs.AHAttr) netip.AddrPort {
	port := a.UDPPort
	if port == 0 {
		port = RoCEPort
	}
	return netip.AddrPortFrom(a.DGID.Addr(), port)
}

// StartTest returns the context of a test with a peer. It ends with ErrPeerExited as its cause
// when the peer's process has exited, and with [watch.ErrIdle] when there is no beat for limit.
// The caller must call stop, which cancels the context.
func StartTest(ctx context.Context, limit time.Duration, m *cm.Manager, adapter netip.AddrPort) (_ context.Context, alive *watch.Watch, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, alive = watch.Start(ctx, limit)
	unwatch := WatchPeer(ctx, m, adapter, alive.Beats, cancel)
	return ctx, alive, func() {
		alive.Stop()
		cancel(nil)
		unwatch()
	}
}
