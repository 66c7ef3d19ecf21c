package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
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

// maxConcurrent is the maximum number of concurrent calls of ForEach.
const maxConcurrent = 256

// ForEach calls do for 0 to n-1, up to maxConcurrent at a time, and waits for all calls. The first
// error cancels the context of the others and is returned.
func ForEach(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calls sync.WaitGroup
	slots := make(chan struct{}, maxConcurrent)
	for i := 0; i < n && ctx.Err() == nil; i++ {
		slots <- struct{}{}
		calls.Go(func() {
			if err := do(ctx, i); err != nil {
				cancel(err) // counts if it is the first
			}
			<-slots
		})
	}
	calls.Wait()
	return context.Cause(ctx)
}

// ForFirstThenEach calls do for 0 and, after it has succeeded, for the others as ForEach does. So
// an error that concerns every connection, such as a mismatch of parameters, is the error of the
// first.
func ForFirstThenEach(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	if err := do(ctx, 0); err != nil {
		return err
	}
	return ForEach(ctx, n-1, func(ctx context.Context, i int) error { return do(ctx, i+1) })
}

// PollWait calls cq.PollWait and returns the cause of the context's end, if ctx has ended.
func PollWait(ctx context.Context, cq verbs.CQ, wcs []verbs.WC) (int, error) {
	n, err := cq.PollWait(ctx, wcs)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return n, err
}

// ExplainIdle adds the formatted progress to an error that wraps watch.ErrIdle. It returns other
// errors as they are.
func ExplainIdle(err error, format string, args ...any) error {
	if errors.Is(err, watch.ErrIdle) {
		return fmt.Errorf("%w: %s", err, fmt.Sprintf(format, args...))
	}
	return err
}
