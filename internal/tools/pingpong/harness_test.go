package pingpong_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/softrnic/softrnic/internal/tools/pingpong"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hang is a time after which a test has failed.
const hang = time.Minute

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	t.Cleanup(cancel)
	return ctx
}

func device(t *testing.T, o rnic.Options) verbs.Device {
	dev, err := rnic.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { dev.Close() })
	return dev
}

// outcome is how a run ended.
type outcome struct {
	result pingpong.Result
	out    string
	err    error
}

// server is a server that waits.
type server struct {
	port  int
	ended chan outcome
	mu    sync.Mutex
	drops []error
	drop  chan struct{}
}

// serve starts a server on a device of its own.
func serve(t *testing.T, o pingpong.Options) *server {
	t.Helper()
	s := &server{ended: make(chan outcome, 1), drop: make(chan struct{}, 100)}
	ready := make(chan int, 1)
	o.Port, o.Listening = 0, func(port int) { ready <- port }
	o.Dropped = func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drops = append(s.drops, err)
		s.drop <- struct{}{}
	}
	if o.Device == nil && o.Open == nil {
		o.Device = device(t, rnic.Options{})
	}
	ctx, cancel := context.WithCancel(soon(t))
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		s.ended <- run(ctx, o)
	}()
	select {
	case s.port = <-ready:
	case e := <-s.ended:
		s.ended <- e
		require.NoError(t, e.err)
		t.Fatal("the server did not wait")
	}
	return s
}

// dropped returns the next client that was sent away.
func (s *server) dropped(t *testing.T) error {
	t.Helper()
	select {
	case <-s.drop:
	case <-time.After(hang):
		t.Fatal("nobody was dropped")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drops[len(s.drops)-1]
}

func run(ctx context.Context, o pingpong.Options) outcome {
	var out bytes.Buffer
	o.Out = &out
	result, err := pingpong.Run(ctx, o)
	return outcome{result, out.String(), err}
}

// both is where two sides wait for each other at the end, so that no
// acknowledgement gets lost.
type both struct {
	once [2]sync.Once
	here [2]chan struct{}
}

func newBoth() *both { return &both{here: [2]chan struct{}{make(chan struct{}), make(chan struct{})}} }

// arrive says that side i has come to the end.
func (b *both) arrive(i int) { b.once[i].Do(func() { close(b.here[i]) }) }

// stay is Options.Stay of side i.
func (b *both) stay(i int) func(context.Context) {
	return func(ctx context.Context) {
		b.arrive(i)
		select {
		case <-b.here[1-i]:
		case <-ctx.Done():
		}
	}
}

// play runs a server and a client against each other.
func play(t *testing.T, s, c pingpong.Options) (server, client outcome) {
	t.Helper()
	end := newBoth()
	s.Stay, c.Stay = end.stay(0), end.stay(1)
	host := serve(t, s)
	c.Server, c.Port = "127.0.0.1", host.port
	if c.Device == nil && c.Open == nil {
		c.Device = device(t, rnic.Options{})
	}
	clients := make(chan outcome)
	go func() {
		e := run(soon(t), c)
		end.arrive(1)
		clients <- e
	}()
	server = <-host.ended
	end.arrive(0)
	client = <-clients
	require.Empty(t, host.drops)
	return server, client
}

// openLoopback is what Options.Open gets in tests: the peer is always on this
// machine.
func openLoopback() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }

var errNotHere = errors.New("no device is opened here")
