package toolstest

import (
	"context"
	"testing"
)

// A Server is a running server of a tool. A is the type of its address, a TCP port or an address;
// O is the outcome of a run.
type Server[A, O any] struct {
	At    A
	Ended <-chan O
	Stop  context.CancelFunc
}

// Serve starts a server, which calls listening with its address. The end of the test stops it and
// waits for it.
func Serve[A, O any](t testing.TB, run func(ctx context.Context, listening func(A)) O) *Server[A, O] {
	t.Helper()
	ready, ended, done := make(chan A, 1), make(chan O, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(Context(t))
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		ended <- run(ctx, func(at A) { ready <- at })
	}()
	s := &Server[A, O]{Ended: ended, Stop: cancel}
	select {
	case s.At = <-ready:
	case e := <-ended:
		t.Fatalf("the server did not wait: %+v", e)
	}
	return s
}

// RunPair runs a client against a started server. Both wait for each other at the barrier, as
// sides 1 and 0.
func RunPair[A, O any](s *Server[A, O], end *Barrier, run func() O) (server, client O) {
	clients := make(chan O)
	go func() {
		e := run()
		end.Arrive(1)
		clients <- e
	}()
	server = <-s.Ended
	end.Arrive(0)
	return server, <-clients
}
