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

// ErrPeerExited reports that nothing listens at the address of the peer's adapter any more: its
// process was killed or has ended. It comes wrapped, with the peer and the system's reason.
var ErrPeerExited = errors.New("its process has ended")

const (
	probeInterval    = time.Second / 2 // of an adapter that nothing came from
	maxRefusedProbes = 2               // refused until the peer counts as gone: what it said last may be unread
	probePort        = 1               // of RDMA-CM, which no program serves
)

// WatchPeer calls gone, once, when the system of the peer reports twice in a row that nothing
// listens at its adapter. A process that is killed sends nothing, and an end that waits for it
// sends nothing either, so after each half second without progress WatchPeer asks the peer's manager of
// connections by SIDR for a service that no program has. Any answer, and silence too, counts as
// life. progress returns a number that changes with progress; it may be nil. The returned
// function ends the watch and waits for it.
func WatchPeer(ctx context.Context, m *cm.Manager, adapter netip.AddrPort, progress func() uint64, gone func(error)) (stop func()) {
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
			why := probePeer(ctx, m, adapter)
			if why == nil {
				refused = 0
			} else if refused++; refused == maxRefusedProbes {
				gone(fmt.Errorf("peer %v: %w: %w", adapter, ErrPeerExited, why))
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// probePeer asks the manager of connections of an adapter, and returns why the system does
// not deliver that, or nil.
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

// AdapterAddr returns the address and UDP port of the adapter that datagrams with the address vector a go to.
func AdapterAddr(a verbs.AHAttr) netip.AddrPort {
	port := a.UDPPort
	if port == 0 {
		port = RoCEPort
	}
	return netip.AddrPortFrom(a.DGID.Addr(), port)
}

// StartTest returns the context of a test with a peer, which ends with ErrPeerGone as its cause
// when the peer has gone, and with [watch.ErrIdle] when there is no beat for limit. stop has to
// be called; it ends the context.
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
