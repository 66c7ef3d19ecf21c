package datacutter

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"
)

// pair returns a job of a producer on host x and a consumer on host y.
func pair(read, view func(Instance) (Filter, error)) Job {
	return Job{
		Group: Group{
			Filters: []FilterDef{{"read", read}, {"view", view}},
			Streams: []Stream{{Name: "a", From: "read", To: "view", UnitSize: 64}},
		},
		Layout: Layout{{Filter: "read", Host: "x"}, {Filter: "view", Host: "y"}},
	}
}

// started runs host y of a pair, so that the test can act as host x. It returns the address of y
// and the channel of Run's result.
func started(t *testing.T, network Network, job Job) (addr string, done func() (Report, error)) {
	n, err := Listen(guard(t), network)
	require.NoError(t, err)
	var wg sync.WaitGroup
	var report Report
	wg.Go(func() {
		report, err = n.Run(guard(t), job, "y", map[string]string{"x": "unused"})
	})
	t.Cleanup(wg.Wait)
	return n.Addr(), func() (Report, error) { wg.Wait(); return report, err }
}

func dial(t *testing.T, network Network, addr string) net.Conn {
	c, err := network.Dial(guard(t), addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// listen reads from a connection until the end of the test, so that written data is sent over any
// network.
func listen(t *testing.T, c net.Conn) {
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(io.Discard, c) })
	t.Cleanup(func() { c.Close(); wg.Wait() })
}

// closeWrite closes the sending direction. Close would reset a TCP connection with unread data.
func closeWrite(t *testing.T, c net.Conn) {
	if p, ok := c.(*pipeEnd); ok {
		p.out.close(&p.out.writeClosed)
		return
	}
	require.NoError(t, c.(interface{ CloseWrite() error }).CloseWrite())
}

// readReason returns the reason with which a peer closes a connection.
func readReason(t *testing.T, c net.Conn) string {
	f, err := newFrameReader(c, 0).nextFrame()
	require.NoError(t, err)
	require.Equal(t, kindAbort, f.kind)
	return string(f.payload)
}

// A connection that does not belong to the job is rejected, with the reason if it uses the
// protocol. The run continues.
func TestForeignConnections(t *testing.T) {
	for name, network := range networks(t) {
		t.Run(name, func(t *testing.T) {
			var b bin
			job := pair(count(3, "a"), b.sink("a"))
			addr, done := started(t, network, job)
			good := hello{digest: job.computeDigest()}

			c := dial(t, network, addr)
			_, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: example.com\r\nUser-Agent: a long name\r\n\r\n"))
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, c)
			if err != nil { // unread bytes reset a TCP connection
				require.ErrorAs(t, err, new(*net.OpError))
			}

			c = dial(t, network, addr)
			closeWrite(t, c)
			require.Equal(t, "no hello received", readReason(t, c))

			other := pair(count(3, "a"), b.sink("a"))
			other.Layout[1].Copies = 2
			c = dial(t, network, addr)
			_, err = c.Write(hello{digest: other.computeDigest()}.appendTo(nil))
			require.NoError(t, err)
			require.Contains(t, readReason(t, c), "host y has a different job")

			c = dial(t, network, addr)
			_, err = c.Write(hello{good.digest, slot{to: 1}}.appendTo(nil))
			require.NoError(t, err)
			require.Contains(t, readReason(t, c), "host y expects no connection of stream 0 from copy 0 to copy 1")

			c = dial(t, network, addr)
			_, err = c.Write(good.appendTo(nil))
			require.NoError(t, err)
			r := newFrameReader(c, 0)
			f, err := r.nextFrame()
			require.NoError(t, err)
			require.Equal(t, kindWelcome, f.kind)
			bytes := appendEnd(appendFrame(nil, kindUnit, []byte("hi")), 0, Counts{1, 2})
			_, err = c.Write(appendFrame(bytes, kindBye, nil))
			require.NoError(t, err)
			f, err = r.nextFrame()
			require.NoError(t, err)
			require.Equal(t, kindBye, f.kind)
			require.NoError(t, c.Close())
			report, err := done()
			require.NoError(t, err)
			require.Equal(t, 4, report.Strangers)
			require.Equal(t, []string{"hi"}, b.contents())
		})
	}
}

// A peer that violates the protocol ends the run, with an error that names the violation.
func TestInvalidProducer(t *testing.T) {
	unit, all := appendFrame(nil, kindUnit, []byte("hi")), networks(t)
	for says, bytes := range map[string][]byte{
		"end of work 0 after 2 units of 4 bytes, want work 0 after 1 of 2 bytes": appendEnd(unit, 0, Counts{2, 4}),
		"end of work 1 after 1 units":                                            appendEnd(unit, 1, Counts{1, 2}),
		"unit of 65 bytes, want 0 to 64":                                         appendFrame(nil, kindUnit, make([]byte, 65)),
		"got bye, want units":                                                    appendFrame(unit, kindBye, nil),
		"got unit, want bye":                                                     append(appendEnd(unit, 0, Counts{1, 2}), unit...),
		"got hello, want units":                                                  hello{}.appendTo(nil),
		"header 47 45 54 20":                                                     []byte("GET / HTTP/1.1"),
		"connection closed without bye":                                          unit,
		"unexpected EOF":                                                         unit[:9],
		"aborted by peer: no disk":                                               appendFrame(unit, kindAbort, []byte("no disk")),
	} {
		for _, network := range all {
			for copies := 1; copies <= 2; copies++ { // without and with reader goroutines
				var b bin
				job := pair(count(3, "a"), b.sink("a"))
				job.Layout[0].Copies = copies
				addr, done := started(t, network, job)
				for c := range copies {
					conn := dial(t, network, addr)
					_, err := conn.Write(hello{job.computeDigest(), slot{from: c}}.appendTo(nil))
					require.NoError(t, err)
					listen(t, conn)
					if c == 0 {
						_, err = conn.Write(bytes)
						require.NoError(t, err)
						if says == "connection closed without bye" || says == "unexpected EOF" {
							closeWrite(t, conn)
						}
						continue
					}
					// The other copy is correct and has no reason of its own, or is too late.
					_, _ = conn.Write(appendFrame(appendEnd(nil, 0, Counts{}), kindBye, nil))
				}
				_, err := done()
				require.ErrorContains(t, err, says)
				require.ErrorContains(t, err, "view[0] of group 0 on host y: ")
				require.ErrorContains(t, err, "stream a from read[0] of group 0 on host x: ")
				if !errors.As(err, new(*RemoteError)) && !errors.Is(err, io.ErrUnexpectedEOF) {
					require.ErrorIs(t, err, ErrFrame)
				}
			}
		}
	}
}

func TestAcknowledgementOfNothing(t *testing.T) {
	rs := &replies{unacked: []int{1, 0}, err: make([]error, 2)}
	rs.changed.L = &rs.mu
	require.True(t, rs.handleFrame(0, frame{kind: kindAck}, nil))
	require.False(t, rs.handleFrame(0, frame{kind: kindAck}, nil))
	to, err := rs.chooseCopy()
	require.Zero(t, to)
	require.ErrorIs(t, err, ErrFrame)
	require.ErrorContains(t, err, "acknowledgement without an outstanding unit")
}

// A consumer that violates the protocol.
func TestInvalidConsumer(t *testing.T) {
	for says, bytes := range map[string][]byte{
		"got bye, want acknowledgements":  appendFrame(nil, kindBye, nil),
		"got unit, want acknowledgements": appendFrame(nil, kindUnit, nil),
		"want 0 to 0":                     appendFrame(nil, kindUnit, []byte{1}),
	} {
		wait := make(chan struct{})
		read := always(func(ctx context.Context, w *Work) error {
			for {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-wait: // the reader of acknowledgements has received the frame
				}
				if err := w.Out("a").Send([]byte("hi")); err != nil {
					return err
				}
			}
		})
		job := pair(read, new(bin).sink("a"))
		job.Layout[1].Copies = 2
		job.Group.Streams[0].Policy = DemandDriven
		network := NewMemory()
		y, err := network.Listen(guard(t))
		require.NoError(t, err)
		x, err := Listen(guard(t), network)
		require.NoError(t, err)
		var wg sync.WaitGroup
		var failed error
		wg.Go(func() {
			_, failed = x.Run(guard(t), job, "x", map[string]string{"y": y.Addr().String()})
		})
		for i := range 2 {
			c, err := y.Accept()
			require.NoError(t, err)
			defer c.Close()
			_, err = io.ReadFull(c, make([]byte, frameHeader+helloLen))
			require.NoError(t, err)
			_, err = c.Write(appendFrame(nil, kindWelcome, nil))
			require.NoError(t, err)
			if i == 1 {
				_, err = c.Write(bytes)
				require.NoError(t, err)
			}
		}
		close(wait)
		wg.Wait()
		require.ErrorIs(t, failed, ErrFrame)
		require.ErrorContains(t, failed, says)
		require.ErrorContains(t, failed, "stream a to view[1] of group 0 on host y: ")
		require.NoError(t, y.Close())
	}
}

// A missing host is awaited until the context ends, and the error names it.
func TestMissingHost(t *testing.T) {
	for name, network := range networks(t) {
		t.Run(name, func(t *testing.T) {
			enough := errors.New("enough")
			job := pair(count(3, "a"), new(bin).sink("a"))
			n, err := Listen(guard(t), network)
			require.NoError(t, err)
			ctx, cancel := context.WithCancelCause(guard(t))
			// The rejection of a foreign connection shows that the host waits.
			var wg sync.WaitGroup
			wg.Go(func() {
				c, err := network.Dial(ctx, n.Addr())
				if err == nil {
					_, err = c.Write(hello{}.appendTo(nil))
				}
				if err == nil {
					_, err = newFrameReader(c, 0).nextFrame()
					c.Close()
				}
				cancel(errors.Join(enough, err))
			})
			_, err = n.Run(ctx, job, "y", map[string]string{"x": "unused"})
			wg.Wait()
			require.ErrorIs(t, err, enough)
			require.ErrorContains(t, err, "datacutter: view[0] of group 0 on host y: stream a from read[0] of group 0 on host x: wait for connection: enough")
		})
	}
}

// A host that fails before it has dialed sends the reason to its peers.
func TestFailureBeforeConnecting(t *testing.T) {
	fails := func(Instance) (Filter, error) { return nil, errBoom }
	for name, network := range networks(t) {
		t.Run(name, func(t *testing.T) {
			errs := runHosts(guard(t), t, network, pair(fails, new(bin).sink("a")))
			require.ErrorIs(t, errs["x"], errBoom)
			require.ErrorContains(t, errs["y"], "read[0] of group 0 on host x: new: boom")
			errs = runHosts(guard(t), t, network, pair(count(3, "a"), fails))
			require.ErrorIs(t, errs["y"], errBoom)
			require.Error(t, errs["x"])
		})
	}
}

// lateNetwork is a network on which the second connection is made after the first host has ended
// its run.
type lateNetwork struct {
	Network
	dials atomic.Int32
	ended chan struct{}
}

func (l *lateNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if l.dials.Add(1) > 1 {
		<-l.ended
	}
	return l.Network.Dial(ctx, addr)
}

// A host that is unreachable has sent its reason to another instance.
func TestFailureBeforeAllIsConnected(t *testing.T) {
	for name, network := range networks(t) {
		t.Run(name, func(t *testing.T) {
			late := &lateNetwork{Network: network, ended: make(chan struct{})}
			boom := always(func(context.Context, *Work) error { return errBoom })
			job := pair(sendForever("a"), boom)
			job.Layout = append(job.Layout, Placement{Filter: "read", Host: "x", Group: 1}, Placement{Filter: "view", Host: "y", Group: 1})
			nodes, addrs := map[string]*Node{}, map[string]string{}
			for _, h := range job.Layout.Hosts() {
				n, err := Listen(guard(t), late)
				require.NoError(t, err)
				n.grace = patience
				nodes[h], addrs[h] = n, n.Addr()
			}
			var wg sync.WaitGroup
			var failed, first error
			wg.Go(func() { _, failed = nodes["x"].Run(guard(t), job, "x", addrs) })
			wg.Go(func() {
				defer close(late.ended)
				_, first = nodes["y"].Run(guard(t), job, "y", addrs)
			})
			wg.Wait()
			require.ErrorIs(t, first, errBoom)
			require.ErrorContains(t, failed, "boom")
		})
	}
}

// TestGrace checks that a peer that does not read delays the end of a failed run by a second.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := net.Pipe()
		defer peer.Close()
		begin := time.Now()
		(&link{ctx: t.Context(), conn: conn, grace: defaultGrace}).closeWithAbort("boom")
		require.Equal(t, time.Second, time.Since(begin))
	})
}

// TestSilentStranger checks that a connection without hello is rejected after 10 s.
func TestSilentStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := net.Pipe()
		defer peer.Close()
		r := &run{Node: &Node{grace: defaultGrace}, ctx: t.Context()}
		begin := time.Now()
		go r.handleHello(conn)
		f, err := newFrameReader(peer, 0).nextFrame()
		require.NoError(t, err)
		require.Equal(t, kindAbort, f.kind)
		require.Equal(t, "no hello received", string(f.payload))
		require.Equal(t, 10*time.Second, time.Since(begin))
	})
}

func TestPipeIsAConn(t *testing.T) {
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
		a, b := newPipe()
		return a, b, func() { a.Close(); b.Close() }, nil
	})
}

func TestPipeDeliversWhatWasWrittenBeforeClose(t *testing.T) {
	a, b := newPipe()
	n, err := a.Write(make([]byte, pipeSize)) // fits into the buffer
	require.NoError(t, err)
	require.Equal(t, pipeSize, n)
	require.NoError(t, a.Close())
	got, err := io.ReadAll(b)
	require.NoError(t, err)
	require.Len(t, got, pipeSize)
	_, err = b.Write([]byte{1})
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.NoError(t, b.Close())
}
