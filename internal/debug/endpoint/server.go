package endpoint

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Server is the debug endpoint of one device.
type Server struct {
	http    http.Server
	address Address
	cancel  context.CancelFunc // ends requests under way
	done    chan struct{}      // closed when nobody accepts any more
}

// closeTimeout is how long Close waits for requests under way.
const closeTimeout = time.Second

// Serve opens the endpoint of dev at addr and answers until Close. addr is
// Auto, "unix:/path", or a loopback address with a port, 0 for any:
// "127.0.0.1:9479". Close does not close the device, nor does the device
// close the server.
func Serve(dev Device, addr string) (*Server, error) {
	l, at, err := listenAddress(addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{address: at, cancel: cancel, done: make(chan struct{})}
	s.http.Handler = newHandler(dev, at.Network)
	s.http.ReadHeaderTimeout = 5 * time.Second
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // ends with Close; nothing is lost if it ends before
	}()
	return s, nil
}

// Addr is where the server listens, in the form that Serve and NewClient take.
func (s *Server) Addr() string { return s.address.String() }

// Close ends requests under way, a capture too, and removes the endpoint.
// Closing twice is safe.
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
