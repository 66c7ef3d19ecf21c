package sdpproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
)

// Run passes connections on until ctx ends. No more are taken then, and those
// that there are have Options.Grace. Connections that fail do not end it.
func Run(ctx context.Context, o Options) (Totals, error) {
	if err := o.check(); err != nil {
		return Totals{}, err
	}
	o.complete()
	p := &proxy{Options: &o, sockets: sockets.New(o.Place, o.SDP), links: make(map[*link]struct{})}
	err := p.run(ctx)
	return p.totals(), err
}

// proxy is a run under way.
type proxy struct {
	*Options
	sockets *sockets.Sockets
	running sync.WaitGroup // links

	count, failed, cut atomic.Uint64
	bytesTo, bytesFrom atomic.Uint64

	mu    sync.Mutex
	links map[*link]struct{}
	over  bool // no time is left

	log sync.Mutex
}

// say writes a line to the log.
func (p *proxy) say(format string, args ...any) {
	p.log.Lock()
	defer p.log.Unlock()
	fmt.Fprintf(p.Log, format+"\n", args...)
}

func (p *proxy) totals() Totals {
	return Totals{
		Connections: p.count.Load(), Failed: p.failed.Load(), Cut: p.cut.Load(),
		BytesTo: p.bytesTo.Load(), BytesFrom: p.bytesFrom.Load(),
	}
}

func (p *proxy) run(ctx context.Context) (err error) {
	defer func() {
		last, cancel := context.WithTimeout(context.Background(), max(p.Grace, time.Second))
		defer cancel()
		err = errors.Join(err, p.sockets.Close(last))
	}()
	l, err := p.sockets.Listen(ctx, p.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	p.Listening(l.Addr())
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	err = p.accept(ctx, l)
	l.Close()
	p.Ending(p.open())
	p.finish()
	return err
}

// accept takes connections until ctx ends.
func (p *proxy) accept(ctx context.Context, l net.Listener) error {
	for pause := time.Duration(0); ; {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				c.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // out of files, for example: some will end
			p.say("accept: %v", err)
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		pause = 0
		k := &link{proxy: p, number: p.count.Add(1), in: c.(sockets.Conn)}
		p.running.Go(func() { k.run(ctx) })
	}
}

// finish gives links their time, and then ends them.
func (p *proxy) finish() {
	late := time.AfterFunc(p.Grace, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.over = true
		for k := range p.links {
			k.end(errCut)
		}
	})
	p.running.Wait()
	late.Stop()
}

// open is how many links there are.
func (p *proxy) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// enter adds a link that is there, unless no time is left.
func (p *proxy) enter(k *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.links[k] = struct{}{}
	return true
}

func (p *proxy) leave(k *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, k)
}
