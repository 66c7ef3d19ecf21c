package datacutter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// run is a running Node. Each instance has a goroutine, in which its filter reads and writes the connections
// directly. Further goroutines exist only where one goroutine would have to wait for several connections.
type run struct {
	*Node
	plan  *plan
	host  string
	addrs map[string]string

	ctx        context.Context // ends with the first failure, which is its cause
	end        context.CancelFunc
	fail       func(error) // ends ctx, or its parent
	instances  []*instance
	quit       chan struct{}  // closed when the instances have ended
	readers    sync.WaitGroup // of inputs and replies
	handshakes sync.WaitGroup // acceptLoop, and connections in their handshake

	mu            sync.Mutex
	slots         map[slot]chan *link // expected connections
	conns         map[net.Conn]bool   // all open connections
	links         []*link             // connections after the handshake
	stopping      bool                // the run is ending: accept no more connections
	connectErr    error               // the error of an instance that was not connected when the run ended
	rejected      int                 // number of rejected connections
	lastRejection string              // reason of the last rejection
}

// newRun prepares a run, which calls fail, to end ctx, at the first failure.
func newRun(ctx context.Context, fail context.CancelCauseFunc, n *Node, p *plan, me string, addrs map[string]string) *run {
	r := &run{Node: n, plan: p, host: me, addrs: addrs, fail: fail, quit: make(chan struct{}),
		slots: make(map[slot]chan *link), conns: make(map[net.Conn]bool)}
	r.ctx, r.end = context.WithCancel(ctx)
	for _, at := range p.instancesOn(me) {
		r.instances = append(r.instances, newInstance(r, at))
	}
	return r
}

// runAll runs the instances, and releases all resources.
func (r *run) runAll() (Report, error) {
	cut := make(chan struct{})
	go func() {
		<-r.ctx.Done()
		r.interruptConns()
		close(cut)
	}()
	tokens := make(chan struct{}, maxHandshakes+len(r.slots))
	r.handshakes.Go(func() { r.acceptLoop(tokens) })
	var wg sync.WaitGroup
	for _, i := range r.instances {
		wg.Go(func() {
			if err := i.runFilter(); err != nil {
				r.fail(&FilterError{Instance: i.Instance, Err: err})
			}
		})
	}
	wg.Wait()
	err := r.resultError()
	close(r.quit)
	r.end()
	<-cut // before new deadlines are set
	r.readers.Wait()
	r.closeAll(err)
	r.handshakes.Wait()
	return r.buildReport(), err
}

// noteConnectError records the error of an instance that was not connected when the run ended.
func (r *run) noteConnectError(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connectErr == nil {
		r.connectErr = err
	}
}

// waitAbort waits for up to the grace period for the cause of a connection failure. A failed host accepts no
// more connections, but may have sent its reason to another instance here, which should then be the first to
// fail.
func (r *run) waitAbort(err error) {
	if errors.As(err, new(*RemoteError)) || len(r.instances) == 1 {
		return
	}
	graceTimer := time.NewTimer(r.grace)
	defer graceTimer.Stop()
	select {
	case <-r.ctx.Done():
	case <-graceTimer.C:
	}
}

// resultError returns the cause of the run's end, or nil if all works are finished.
func (r *run) resultError() error {
	err := context.Cause(r.ctx)
	if err == nil || errors.As(err, new(*FilterError)) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connectErr != nil && errors.Is(r.connectErr, err) {
		return r.connectErr
	}
	return fmt.Errorf("datacutter: host %s: %w", r.host, err)
}

// interruptConns interrupts all reads and writes.
func (r *run) interruptConns() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopping = true
	r.Node.Close()
	for c := range r.conns {
		_ = c.SetDeadline(time.Unix(1, 0)) // if it fails, no call is blocked
	}
}

// trackConn registers a connection to be interrupted and closed with the run.
func (r *run) trackConn(c net.Conn) error {
	r.mu.Lock()
	cut := r.stopping
	r.conns[c] = true
	r.mu.Unlock()
	if cut {
		r.dropConn(c)
		return context.Cause(r.ctx)
	}
	return nil
}

// dropConn closes a connection.
func (r *run) dropConn(c net.Conn) {
	r.mu.Lock()
	delete(r.conns, c)
	r.mu.Unlock()
	c.Close()
}

// closeAll closes all connections. If the run failed, it first sends the reason to the peers.
func (r *run) closeAll(failed error) {
	text := ""
	if failed != nil {
		text = abortReason(failed)
	}
	var wg sync.WaitGroup
	for _, i := range r.instances {
		for _, out := range i.outputs {
			for c, l := range out.links {
				if l == nil && failed != nil {
					wg.Go(func() { r.sendAbort(out.to[c], out.slotFor(i.Instance, c), text) })
				}
			}
		}
	}
	r.mu.Lock()
	links := r.links
	r.mu.Unlock()
	for _, l := range links {
		wg.Go(func() { l.closeWithAbort(text) })
	}
	wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.Close()
	}
}

// buildReport merges the reports of the instances.
func (r *run) buildReport() (report Report) {
	for _, i := range r.instances {
		report = report.Merge(i.buildReport())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	report.Strangers = r.rejected
	return report
}
