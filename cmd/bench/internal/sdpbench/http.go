package sdpbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/measure"
	"github.com/softrnic/softrnic/cmd/bench/internal/payload"
	"github.com/softrnic/softrnic/cmd/bench/internal/proc"
)

const roleHTTP = "http"

// HTTPConfig says what is asked for, and over what.
type HTTPConfig struct {
	Transport   Transport
	Connections int // kept alive, each with one request at a time
	Bytes       int // of a response
}

// HTTP is two processes: a server of package net/http with its defaults, and its
// clients. For one goroutine.
type HTTP struct {
	transport Transport
	g         *proc.Group
}

// httpRound asks the clients for requests as long as it says.
type httpRound struct{ Time time.Duration }

// httpReply is what the clients counted; the server counts nothing.
type httpReply struct {
	Requests int64
	Elapsed  time.Duration
}

// OpenHTTP starts the two processes. The caller closes them.
func OpenHTTP(ctx context.Context, c HTTPConfig) (*HTTP, error) {
	if c.Connections < 1 || c.Bytes < 1 {
		return nil, fmt.Errorf("sdpbench: %d connections and responses of %d bytes: at least 1 each", c.Connections, c.Bytes)
	}
	end := proc.Spec{Name: worker, Role: roleHTTP, Args: c}
	g, err := proc.Start(ctx, proc.Options{Pin: true, Timeout: roundTimeout + 10*time.Second}, end, end)
	if err != nil {
		return nil, err
	}
	return &HTTP{c.Transport, g}, nil
}

// Close ends both processes. Closing twice is safe.
func (h *HTTP) Close() { h.g.Close() }

// RequestRate has the clients ask for so long, and returns how many requests a second
// were answered. Every response is compared with what it should be.
func (h *HTTP) RequestRate(ctx context.Context, d time.Duration) (float64, error) {
	ends, err := proc.Call[httpRound, httpReply](ctx, h.g, httpRound{d})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", h.transport, err)
	}
	return float64(ends[0].Requests) / ends[0].Elapsed.Seconds(), nil
}

// Rounds is Requests as measure.Alternate takes it.
func (h *HTTP) Rounds(d time.Duration) measure.Round {
	return func(ctx context.Context) (float64, error) { return h.RequestRate(ctx, d) }
}

func init() {
	proc.Register(worker, roleHTTP, func(ctx context.Context, w *proc.Worker) error {
		c, err := proc.Args[HTTPConfig](w)
		if err != nil {
			return err
		}
		if w.Rank == 1 {
			return serveHTTP(ctx, w, c)
		}
		return runHTTPClients(ctx, w, c)
	})
}

// serveHTTP is the server's process.
func serveHTTP(ctx context.Context, w *proc.Worker, c HTTPConfig) error {
	l, mine, hangUp, err := listenOver(c)
	if err != nil {
		return err
	}
	defer hangUp()
	body := payload.New(c.Bytes)
	server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = rw.Write(body) // a client that is gone has said so itself
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	defer func() {
		server.Close()
		<-ended
	}()
	if _, err := proc.Exchange(ctx, w, mine); err != nil {
		return err
	}
	return proc.Serve(ctx, w, func(ctx context.Context, _ httpRound) (httpReply, error) {
		return httpReply{}, proc.Barrier(ctx, w)
	})
}

// listenOver returns a listener, where it is, and what closes all.
func listenOver(c HTTPConfig) (l net.Listener, at listenInfo, hangUp func(), err error) {
	if c.Transport == TCP {
		l, at, err = listenTCP()
		return l, at, func() {}, err
	}
	dev, stack, hangUp, err := openStack(Config{Transport: c.Transport})
	if err != nil {
		return nil, at, nil, err
	}
	if l, at, err = listenSDP(dev, stack); err != nil {
		hangUp()
		return nil, at, nil, err
	}
	return l, at, hangUp, nil
}

// runHTTPClients is the clients' process.
func runHTTPClients(ctx context.Context, w *proc.Worker, c HTTPConfig) error {
	dial, hangUp, err := newDialer(c)
	if err != nil {
		return err
	}
	defer hangUp()
	sheets, err := proc.Exchange(ctx, w, listenInfo{})
	if err != nil {
		return err
	}
	transport := &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, sheets[1]) },
		MaxIdleConnsPerHost: c.Connections, MaxConnsPerHost: c.Connections, DisableCompression: true,
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: roundTimeout}
	want := payload.New(c.Bytes)
	return proc.Serve(ctx, w, func(ctx context.Context, r httpRound) (out httpReply, err error) {
		if err := proc.Barrier(ctx, w); err != nil {
			return out, err
		}
		var n atomic.Int64
		var all sync.WaitGroup
		errs := make([]error, c.Connections)
		start := time.Now()
		for i := range errs {
			all.Go(func() {
				for memory := make([]byte, c.Bytes); errs[i] == nil && time.Since(start) < r.Time; n.Add(1) {
					errs[i] = getAndVerify(ctx, client, sheets[1].Addr, memory, want)
				}
			})
		}
		all.Wait()
		return httpReply{n.Load(), time.Since(start)}, errors.Join(errs...)
	})
}

// newDialer returns what dials, and what closes all.
func newDialer(c HTTPConfig) (dial func(context.Context, listenInfo) (net.Conn, error), hangUp func(), err error) {
	if c.Transport == TCP {
		return dialTCP, func() {}, nil
	}
	_, stack, hangUp, err := openStack(Config{Transport: c.Transport})
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, to listenInfo) (net.Conn, error) { return dialSDP(ctx, stack, to) }, hangUp, nil
}

// getAndVerify does one request.
func getAndVerify(ctx context.Context, client *http.Client, at netip.AddrPort, memory []byte, want payload.Pattern) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+"/", nil)
	if err != nil {
		return err
	}
	a, err := client.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK || a.ContentLength != int64(len(memory)) {
		return fmt.Errorf("the server answers %s with %d bytes", a.Status, a.ContentLength)
	}
	if _, err := io.ReadFull(a.Body, memory); err != nil {
		return err
	}
	if n, err := a.Body.Read(make([]byte, 1)); n > 0 || err != io.EOF { // and may use the connection again
		return fmt.Errorf("the response does not end: %d, %w", n, err)
	}
	return want.Check(memory, false)
}
