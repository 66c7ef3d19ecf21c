package datacutter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// run is a Node at work. Each instance has a goroutine, in which its filter
// reads and writes the connections itself; others there are only where one
// goroutine would have to wait for several connections.
type run struct {
	*Node
	plan  *plan
	host  string
	addrs map[string]string

	ctx        context.Context // ends with the first failure, which is its cause
	end        context.CancelFunc
	fail       func(error) // ends ctx, or one that it depends on
	instances  []*instance
	quit       chan struct{}  // closed when the instances have ended
	readers    sync.WaitGroup // of inputs and replies
	handshakes sync.WaitGroup // of accept, and of connections in their handshake

	mu            sync.Mutex
	slots         map[slot]chan *link // connections that are to come
	conns         map[net.Conn]bool   // all that are open
	links         []*link             // those beyond the handshake
	stopping      bool                // the run ends: no new connections
	connectErr    error               // what an instance waited for when the run ended
	rejected      int                 // connections that were refused
	lastRejection string              // why the last was
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

// runAll runs everything and leaves nothing behind.
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

// noteConnectError notes what an instance waited for when the run ended.
func (r *run) noteConnectError(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connectErr == nil {
		r.connectErr = err
	}
}

// waitAbort waits a while for the reason of a connection that could not be made. A
// host that failed takes no more, and may have told another instance why: so the
// one that is told is first to fail here.
func (r *run) waitAbort(err error) {
	if errors.As(err, new(*RemoteError)) || len(r.instances) == 1 {
		return
	}
	late := time.NewTimer(r.grace)
	defer late.Stop()
	select {
	case <-r.ctx.Done():
	case <-late.C:
	}
}

// resultError is why the run ended; nil when everything is done.
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

// interruptConns interrupts whoever waits for a connection.
func (r *run) interruptConns() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopping = true
	r.listener.Close()
	for c := range r.conns {
		_ = c.SetDeadline(time.Unix(1, 0)) // where that fails nobody waits
	}
}

// trackConn has a connection cut with the others, and closed at last.
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

// closeAll closes all connections. If the run failed it says why to those who can
// hear it.
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

func (r *run) buildReport() (report Report) {
	for _, i := range r.instances {
		report = report.Merge(i.buildReport())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	report.Strangers = r.rejected
	return report
}
