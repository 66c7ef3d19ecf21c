package rping_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/rping"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
)

// TestBadClients checks that invalid clients are reported, and that the server continues.
func TestBadClients(t *testing.T) {
	o := rping.Defaults()
	o.Persistent, o.Validate = true, true
	s := serve(t, o)
	o.Persistent = false
	for _, c := range []struct {
		name string
		act  func(p *puppet)
		why  string
	}{
		{"short message", func(p *puppet) { p.send(make([]byte, 15)) }, "received bogus data, size 15"},
		{"empty message", func(p *puppet) { p.send(nil) }, "received bogus data, size 0"},
		{"a byte too many", func(p *puppet) { p.send(make([]byte, 17)) }, "received bogus data, size 17"},
		{"long message", func(p *puppet) { p.send(make([]byte, 64)) }, "cq completion failed status 1"},
		{"nothing to read", func(p *puppet) { p.advertise(0, 0) }, "ping of 0 bytes"},
		{"too much to read", func(p *puppet) { p.advertise(0, 1<<32-1) }, "ping of 4294967295 bytes, limit 64"},
		{"wrong key", func(p *puppet) {
			p.send(rping.Info{Addr: p.mr.Addr(), RKey: p.mr.RKey() ^ 0x100, Size: 64}.Append(nil))
		}, "cq completion failed status 10"},
		{"wrong address", func(p *puppet) { p.advertise(4090, 64) }, "cq completion failed status 10"},
		{"no end of the text", func(p *puppet) {
			copy(p.mr.Bytes(), bytes.Repeat([]byte("x"), 64))
			p.advertise(0, 64)
		}, "bytes without a NUL"},
		{"wrong text", func(p *puppet) {
			copy(p.mr.Bytes(), "rdma-ping-1: ABC\x00")
			p.advertise(0, 64)
		}, "ping 0: data mismatch! ping 0: byte 10 is 0x31 and should be 0x30"},
		{"no room to write", func(p *puppet) {
			golden := goldenPing(t, 0)
			copy(p.mr.Bytes(), golden)
			p.advertise(0, uint32(len(golden)))
			p.receive()
			p.advertise(100, uint32(len(golden))-1)
		}, "write of 64 bytes: client buffer has 63"},
		{"gone in the middle", func(p *puppet) {
			copy(p.mr.Bytes(), goldenPing(t, 0))
			p.advertise(0, 64)
			p.receive()
			p.conn.Disconnect(toolstest.Context(t), nil)
		}, "ping 0: cm: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPuppet(t)
			p.dial(s.At, bytes.Repeat([]byte{0xa5}, 56)) // rping has no private data
			c.act(p)
			err := s.Next(t)
			require.ErrorContains(t, err, c.why)
			require.ErrorContains(t, err, "client "+p.conn.LocalAddr().String())
			good := towards(t, s.At, o)
			good.Count = 2
			require.NoError(t, run(toolstest.Context(t), good).err)
		})
	}
}

// TestSilentPeers checks that the wait for a peer ends.
func TestSilentPeers(t *testing.T) {
	o := rping.Defaults()
	o.IdleTimeout = 100 * time.Millisecond
	s := serve(t, o)
	p := newPuppet(t)
	p.dial(s.At, nil)
	host := <-s.Ended
	require.ErrorIs(t, host.err, watch.ErrIdle)
	require.ErrorContains(t, host.err, "waiting for the client to say where to read")

	p = newPuppet(t)
	addr, done := p.listen(func() {})
	o = towards(t, addr, o)
	client := run(toolstest.Context(t), o)
	require.ErrorIs(t, client.err, watch.ErrIdle)
	require.ErrorContains(t, client.err, "ping 0: no progress since 100ms: waiting for the server to read")
	<-done
}

// TestLostLastMessage checks that a client succeeds if its last message is lost: it has completed
// all pings.
func TestLostLastMessage(t *testing.T) {
	golden := goldenPing(t, 0)
	for count, why := range map[int]string{1: "", 2: "ping 1: no progress"} {
		o := rping.Defaults()
		o.IdleTimeout, o.Count = time.Second, count
		s := serve(t, o)
		p := newPuppet(t)
		copy(p.mr.Bytes(), golden)
		p.dial(s.At, nil)
		p.advertise(0, uint32(len(golden)))
		p.receive()
		p.advertise(100, uint32(len(golden)))
		p.receive()
		err := (<-s.Ended).err
		if why == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, why)
		}
	}
}

// TestBadServers checks that an invalid server ends the client.
func TestBadServers(t *testing.T) {
	for _, c := range []struct {
		name string
		act  func(p *puppet)
		why  string
	}{
		{"short message", func(p *puppet) { p.receive(); p.send(make([]byte, 3)) }, "received bogus data, size 3"},
		{"nothing written", func(p *puppet) {
			p.receive()
			p.send(make([]byte, rping.InfoLen))
			p.receive()
			p.send(make([]byte, rping.InfoLen))
		}, "data mismatch! ping 0: byte 0 is 0x00 and should be 0x72"},
		{"gone", func(p *puppet) { p.conn.Disconnect(toolstest.Context(t), nil) }, "ping 0: cm: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPuppet(t)
			addr, done := p.listen(func() { c.act(p) })
			o := rping.Defaults()
			o.Validate, o.Count = true, 1
			client := run(toolstest.Context(t), towards(t, addr, o))
			require.ErrorContains(t, client.err, c.why)
			<-done
		})
	}
}

// TestNoServer checks the error of a client without a server.
func TestNoServer(t *testing.T) {
	p := newPuppet(t)
	o := rping.Defaults()
	o.Count = 1
	addr := p.m.Addr()
	err := run(toolstest.Context(t), towards(t, addr, o)).err
	require.ErrorContains(t, err, "connect error: cm: ")
	require.ErrorContains(t, err, "the peer does not listen on this port")

	ctx, cancel := context.WithTimeout(toolstest.Context(t), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, p.m.Close())
	err = run(ctx, towards(t, addr, o)).err
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
