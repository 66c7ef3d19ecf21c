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

// HTTPConfig describes the requests and their transport.
type HTTPConfig struct {
	Transport   Transport
	Connections int // kept alive, each with one request in flight
	Bytes       int // size of a response
}

// HTTP is two processes: a server of package net/http with default settings, and its clients.
// It is used by one goroutine only.
type HTTP struct {
	*proc.Group
	transport Transport
}

// An httpRound makes the clients send requests for the given time.
type httpRound struct{ Time time.Duration }

// An httpReply is the result of the clients. The server's is empty.
type httpReply struct {
	Requests int64
	Elapsed  time.Duration
}

// OpenHTTP starts the two processes. The caller must close the session.
func OpenHTTP(ctx context.Context, c HTTPConfig) (*HTTP, error) {
	if c.Connections < 1 || c.Bytes < 1 {
		return nil, fmt.Errorf("sdpbench: %d connections, responses of %d bytes: want at least 1 each", c.Connections, c.Bytes)
	}
	end := proc.Spec{Name: worker, Role: roleHTTP, Args: c}
	g, err := proc.Start(ctx, proc.Options{Pin: true, Timeout: roundTimeout + 10*time.Second}, end, end)
	if err != nil {
		return nil, err
	}
	return &HTTP{g, c.Transport}, nil
}

// RequestRate runs the clients for d and returns the number of requests per second. Every
// response is verified.
func (h *HTTP) RequestRate(ctx context.Context, d time.Duration) (float64, error) {
	clients, err := proc.CallFirst[httpRound, httpReply](ctx, h.Group, httpRound{d})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", h.transport, err)
	}
	return float64(clients.Requests) / clients.Elapsed.Seconds(), nil
}

// Rounds returns RequestRate for measure.Alternate.
func (h *HTTP) Rounds(d time.Duration) measure.Round {
	return func(ctx context.Context) (float64, error) { return h.RequestRate(ctx, d) }
}

func init() {
	proc.RegisterArgs(worker, roleHTTP, func(ctx context.Context, w *proc.Worker, c HTTPConfig) error {
		if w.Rank == 1 {
			return serveHTTP(ctx, w, c)
		}
		return runHTTPClients(ctx, w, c)
	})
}

// serveHTTP runs the server process.
func serveHTTP(ctx context.Context, w *proc.Worker, c HTTPConfig) error {
	l, mine, disconnect, err := listenOver(c)
	if err != nil {
		return err
	}
	defer disconnect()
	body := payload.New(c.Bytes)
	server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = rw.Write(body) // a client that fails reports its own error
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

// listenOver returns a listener, its address, and a function that closes all resources but the
// listener.
func listenOver(c HTTPConfig) (l net.Listener, at listenInfo, disconnect func(), err error) {
	if c.Transport == TCP {
		l, at, err = listenTCP()
		return l, at, func() {}, err
	}
	dev, stack, disconnect, err := openStack(Config{Transport: c.Transport})
	if err != nil {
		return nil, at, nil, err
	}
	if l, at, err = listenSDP(dev, stack); err != nil {
		disconnect()
		return nil, at, nil, err
	}
	return l, at, disconnect, nil
}

// runHTTPClients runs the client process.
func runHTTPClients(ctx context.Context, w *proc.Worker, c HTTPConfig) error {
	dial, disconnect, err := newDialer(c)
	if err != nil {
		return err
	}
	defer disconnect()
	infos, err := proc.Exchange(ctx, w, listenInfo{})
	if err != nil {
		return err
	}
	transport := &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, infos[1]) },
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
					errs[i] = getAndVerify(ctx, client, infos[1].Addr, memory, want)
				}
			})
		}
		all.Wait()
		return httpReply{n.Load(), time.Since(start)}, errors.Join(errs...)
	})
}

// newDialer returns a dial function and a function that closes its resources.
func newDialer(c HTTPConfig) (dial func(context.Context, listenInfo) (net.Conn, error), disconnect func(), err error) {
	if c.Transport == TCP {
		return dialTCP, func() {}, nil
	}
	_, stack, disconnect, err := openStack(Config{Transport: c.Transport})
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, to listenInfo) (net.Conn, error) { return dialSDP(ctx, stack, to) }, disconnect, nil
}

// getAndVerify sends one request and verifies the response.
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
		return fmt.Errorf("response: status %s, %d bytes", a.Status, a.ContentLength)
	}
	if _, err := io.ReadFull(a.Body, memory); err != nil {
		return err
	}
	if n, err := a.Body.Read(make([]byte, 1)); n > 0 || err != io.EOF { // also lets the client reuse the connection
		return fmt.Errorf("response: %d bytes behind the end: %w", n, err)
	}
	return want.Check(memory, false)
}
