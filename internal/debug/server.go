package debug

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// A Server is the debug endpoint of one device.
type Server struct {
	http    http.Server
	address Address
	cancel  context.CancelFunc // ends requests in progress
	done    chan struct{}      // closed when the listener has ended
}

// closeTimeout bounds the time that Close waits for requests in progress.
const closeTimeout = time.Second

// Serve opens the endpoint of dev at addr and serves it until Close. addr is
// Auto, "unix:/path", or a loopback address with a port, 0 for any:
// "127.0.0.1:9479". Close does not close the device, nor does the device close
// the server.
func Serve(dev Device, addr string) (*Server, error) {
	l, at, err := listenAddress(addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{address: at, cancel: cancel, done: make(chan struct{})}
	s.http.Handler = newHandler(dev, at.Network)
	s.http.ErrorLog = log.New(io.Discard, "", 0) // stderr is the program's
	s.http.ReadHeaderTimeout = 5 * time.Second
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // returns after Close
	}()
	return s, nil
}

// Addr returns the address of the server in the form that Serve and NewClient
// accept.
func (s *Server) Addr() string { return s.address.String() }

// Close ends requests in progress, including a capture, and removes the
// endpoint. It is idempotent.
func (s *Server) Close() error {
	s.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-s.done
	return err
}
