// Package sdpproxy forwards streams between TCP and SDP, so that programs without RDMA
// support can communicate over it: one proxy at each side.
//
//	client --TCP--> proxy ==SDP==> proxy --TCP--> server
//
//	totals, err := sdpproxy.Run(ctx, sdpproxy.Options{
//		DeviceSource: source,
//		Listen:       sockets.Addr{Network: "tcp", Host: "localhost", Port: 8080},
//		To:           sockets.Addr{Network: "sdp", Host: "192.0.2.1", Port: 7471},
//	})
//
// The proxy forwards the end of one direction while the other continues (half-close), and
// a reset as a reset.
package sdpproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/sockets"
	"github.com/softrnic/softrnic/sdp"
)

// Run forwards connections until ctx ends. It accepts no more then, and open connections have
// Options.Grace. Failed connections do not end it.
func Run(ctx context.Context, o Options) (Totals, error) {
	if err := o.validate(); err != nil {
		return Totals{}, err
	}
	o.setDefaults()
	p := &proxy{Options: &o, sockets: sockets.New(o.DeviceSource, o.SDP), relays: make(map[*relay]struct{})}
	err := p.run(ctx)
	return p.totals(), err
}

// A proxy is the state of a run.
type proxy struct {
	*Options
	sockets *sockets.Sockets
	running sync.WaitGroup // links

	count, failed, aborted atomic.Uint64
	bytesTo, bytesFrom     atomic.Uint64

	mu           sync.Mutex
	relays       map[*relay]struct{}
	graceExpired bool // Options.Grace has passed

	log sync.Mutex
}

// logf writes a line to the log.
func (p *proxy) logf(format string, args ...any) {
	p.log.Lock()
	defer p.log.Unlock()
	fmt.Fprintf(p.Log, format+"\n", args...)
}

func (p *proxy) totals() Totals {
	return Totals{
		Connections: p.count.Load(), Failed: p.failed.Load(), Cut: p.aborted.Load(),
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
	err = p.acceptConns(ctx, l)
	l.Close()
	p.Ending(p.openRelays())
	p.drainRelays()
	return err
}

// acceptConns accepts connections until ctx ends.
func (p *proxy) acceptConns(ctx context.Context, l net.Listener) error {
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
		case err != nil: // such as too many open files: retry with backoff
			p.logf("accept: %v", err)
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		pause = 0
		k := &relay{proxy: p, number: p.count.Add(1), in: c.(sockets.Conn)}
		p.running.Go(func() { k.runRelay(ctx) })
	}
}

// drainRelays waits for the relays and aborts them after Options.Grace.
func (p *proxy) drainRelays() {
	graceTimer := time.AfterFunc(p.Grace, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.graceExpired = true
		for k := range p.relays {
			k.reset(errAborted)
		}
	})
	p.running.Wait()
	graceTimer.Stop()
}

// openRelays returns the number of open relays.
func (p *proxy) openRelays() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.relays)
}

// addRelay registers a relay and reports false after Options.Grace has passed.
func (p *proxy) addRelay(k *relay) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.graceExpired {
		return false
	}
	p.relays[k] = struct{}{}
	return true
}

func (p *proxy) removeRelay(k *relay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.relays, k)
}

// DefaultDialTimeout is the time to connect to Options.To, after which the client is reset.
const DefaultDialTimeout = 4 * time.Second

// Options describe the two sides of a proxy.
type Options struct {
	rdmacm.DeviceSource

	Listen sockets.Addr // address to accept connections at
	To     sockets.Addr // address to forward them to
	SDP    sdp.Options  // of connections by SDP; KeepAlive is sockets.KeepAlive by default

	DialTimeout time.Duration // bounds the time of a connection to To; the default is DefaultDialTimeout
	Grace       time.Duration // time of open connections after the end of ctx, 5 s by default

	Log       io.Writer      // receives a line for each failed connection; may be nil
	Verbose   bool           // also a line for each client that has disconnected
	Listening func(net.Addr) // is called with the listener's address; may be nil
	Ending    func(open int) // is called with the number of open connections when accepting ends; may be nil
}

func (o *Options) validate() error {
	switch {
	case o.Listen.Network == "":
		return option.Errorf("--listen", "missing; give the address to listen at, for example tcp:localhost:8080")
	case o.To.Network == "":
		return option.Errorf("--to", "missing; give the address to connect to, for example sdp:192.0.2.1:7471")
	case o.To.Host == "":
		return option.Errorf("--to", "%v: host is missing", o.To)
	case o.To.Port == 0:
		return option.Errorf("--to", "%v: port is missing", o.To)
	}
	if o.Listen.Network == sockets.TCP && o.To.Network == sockets.TCP {
		return nil // no adapter
	}
	return o.DeviceSource.Check()
}

func (o *Options) setDefaults() {
	o.DialTimeout = cmp.Or(o.DialTimeout, DefaultDialTimeout)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Listening == nil {
		o.Listening = func(net.Addr) {}
	}
	if o.Ending == nil {
		o.Ending = func(int) {}
	}
}

// Totals are the counters at the end.
type Totals struct {
	Connections uint64 `json:"connections"` // accepted
	Failed      uint64 `json:"failed"`      // of these, not connected or ended abnormally
	Cut         uint64 `json:"cut"`         // of these, aborted at the end of the proxy
	BytesTo     uint64 `json:"bytes_to"`    // forwarded to Options.To
	BytesFrom   uint64 `json:"bytes_from"`  // forwarded to clients
}
