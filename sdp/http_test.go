package sdp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// web serves a handler at b, and returns a client at a with the number of its connections.
func (e *ends) web(t *testing.T, h http.Handler) (*http.Client, *atomic.Int64) {
	t.Helper()
	server := &http.Server{Handler: h}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(e.l) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	dials := new(atomic.Int64)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return e.dialContext(ctx, network, addr)
		},
		MaxIdleConnsPerHost: 100,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, dials
}

// dialContext dials for packages that do not know UDP ports of adapters.
func (e *ends) dialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if e.port == 4791 {
		return e.a.DialContext(ctx, network, addr)
	}
	return e.a.DialAddr(ctx, e.addr(), sdp.Dialer{UDPPort: e.port})
}

func (e *ends) url(path string) string { return "http://" + e.l.Addr().String() + path }

// TestHTTP sends many concurrent requests with keep-alive.
func TestHTTP(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		const clients, requests = 8, 50
		e := newEnds(t, rnic.Options{}, o)
		client, dials := e.web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body) // the whole body: HTTP/1 is half duplex
			if err != nil || int64(len(body)) != r.ContentLength {
				t.Errorf("%d of %d bytes: %v", len(body), r.ContentLength, err)
			}
			if _, err := w.Write(body); err != nil {
				t.Error(err)
			}
		}))
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(1, uint64(i)))
				for range requests {
					body := make([]byte, 1+rng.IntN(100<<rng.IntN(11)))
					for j := range body {
						body[j] = byte(rng.Uint32())
					}
					r, err := client.Post(e.url("/"), "", bytes.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					got, err := io.ReadAll(r.Body)
					r.Body.Close()
					if err != nil || !bytes.Equal(body, got) {
						t.Errorf("%d bytes returned as %d: %v", len(body), len(got), err)
					}
				}
			})
		}
		all.Wait()
		// A request dials while all connections are busy, and may get another's meanwhile.
		require.Less(t, dials.Load(), int64(clients*requests/4), "connections are kept")
	})
}

// TestHTTPContext checks that requests end with their contexts, while others continue.
func TestHTTPContext(t *testing.T) {
	e := newEnds(t, rnic.Options{}, sdp.Options{})
	seen := make(chan struct{}, 1)
	client, _ := e.web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			seen <- struct{}{}
			<-r.Context().Done() // the server detects that the client has closed
			seen <- struct{}{}
		}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url("/slow"), nil)
	require.NoError(t, err)
	failed := make(chan error, 1)
	go func() {
		_, err := client.Do(r)
		failed <- err
	}()
	<-seen
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	<-seen
	answer, err := client.Get(e.url("/"))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
}

// TestHTTPDownload transfers a gigabyte and checks each byte.
func TestHTTPDownload(t *testing.T) {
	size := int64(1) << 30
	if testing.Short() || racesync.Enabled {
		size = 64 << 20
	}
	e := newEnds(t, rnic.Options{}, sdp.Options{})
	sums := make(chan hash.Hash, 1)
	client, _ := e.web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, err := io.Copy(w, io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{1}), size), sum))
		if err != nil {
			t.Error(err)
		}
		sums <- sum
	}))
	r, err := client.Get(e.url("/big"))
	require.NoError(t, err)
	defer r.Body.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, r.Body)
	require.NoError(t, err)
	require.Equal(t, size, n)
	require.Equal(t, (<-sums).Sum(nil), sum.Sum(nil))
}

// TestHTTPRefused checks that a dial without a listener has the error of TCP.
func TestHTTPRefused(t *testing.T) {
	e := newEnds(t, rnic.Options{}, sdp.Options{})
	require.NoError(t, e.l.Close())
	client := &http.Client{Transport: &http.Transport{DialContext: e.dialContext}}
	_, err := client.Get(e.url("/"))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, "dial", op.Op)
	require.Equal(t, "sdp", op.Net)
}
