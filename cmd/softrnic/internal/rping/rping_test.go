package rping_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rping"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/rnic"
)

// TestPing runs pings of every size and compares data and output.
func TestPing(t *testing.T) {
	for _, size := range []int{rping.MinSize, 64, 1024, 4097, rping.MaxSize} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			o := rping.Defaults()
			o.Size, o.Verbose, o.Validate = size, true, true
			s := serve(t, o)
			o = towards(t, s.At, o)
			o.Count = 3
			client := run(toolstest.Context(t), o)
			server := <-s.Ended
			require.NoError(t, client.err)
			require.NoError(t, server.err)
			require.Equal(t, "client DISCONNECT EVENT...\n", client.log)
			require.Equal(t, "server DISCONNECT EVENT...\n", server.log)
			lines := strings.SplitAfter(client.out, "\n")
			require.Len(t, lines, 4)
			for i, line := range lines[:3] {
				head := fmt.Sprintf("ping data: rdma-ping-%d: %c%c", i, 'A'+i, 'A'+i+1)
				require.True(t, strings.HasPrefix(line, head), line)
				require.Len(t, line, len("ping data: ")+size) // a line feed instead of the NUL
			}
			require.Equal(t, strings.ReplaceAll(client.out, "ping data", "server ping data"), server.out)
		})
	}
}

// TestSizesDiffer checks that smaller messages are served, and that both ends reject other differences.
func TestSizesDiffer(t *testing.T) {
	o := rping.Defaults()
	s := serve(t, o)
	c := towards(t, s.At, o)
	c.Size, c.Count, c.Validate = 30, 2, true
	require.NoError(t, run(toolstest.Context(t), c).err)
	require.NoError(t, (<-s.Ended).err)

	for _, m := range []struct {
		size, count    int
		server, client string
	}{
		{65, 3, "-S is 64 here and 65 at the peer", "-S is 65 here and 64 at the peer"},
		{64, 2, "-C is 3 here and 2 at the peer", "-C is 2 here and 3 at the peer"},
		{64, 0, "-C is 3 here and not set at the peer", "-C is not set here and 3 at the peer"},
	} {
		o.Count = 3
		s = serve(t, o)
		c = towards(t, s.At, o)
		c.Size, c.Count = m.size, m.count
		client := run(toolstest.Context(t), c)
		require.ErrorIs(t, client.err, oob.ErrParams)
		require.ErrorContains(t, client.err, m.client)
		server := <-s.Ended
		require.ErrorIs(t, server.err, oob.ErrParams)
		require.ErrorContains(t, server.err, m.server)
	}
}

// TestLoss checks that lost packets are retransmitted.
func TestLoss(t *testing.T) {
	o := rping.Defaults()
	o.Size, o.Validate = 20000, true
	s, c := o, o
	s.Device = toolstest.Device(t, rnic.Options{Impair: "loss 3% seed 5"})
	c.Device = toolstest.Device(t, rnic.Options{Impair: "loss 3% seed 6"})
	c.Count = 20
	host := serve(t, s)
	client := run(toolstest.Context(t), towards(t, host.At, c))
	require.NoError(t, client.err)
}

// TestPersistent serves many clients concurrently, until it is stopped.
func TestPersistent(t *testing.T) {
	o := rping.Defaults()
	o.Persistent, o.Validate, o.Size = true, true, 1000
	s := serve(t, o)
	o.Persistent = false
	var clients sync.WaitGroup
	for i := range 8 {
		c := towards(t, s.At, o)
		c.Count = 5 + i
		clients.Go(func() {
			if e := run(toolstest.Context(t), c); e.err != nil {
				t.Error(e.err)
			}
		})
	}
	clients.Wait()
	s.Stop()
	require.NoError(t, (<-s.Ended).err)
	require.Zero(t, s.Len())
}

// TestOneClient checks that a server that is not persistent rejects a second client.
func TestOneClient(t *testing.T) {
	o := rping.Defaults()
	s := serve(t, o)
	ctx, stop := context.WithCancel(toolstest.Context(t))
	c := towards(t, s.At, o)
	out := &signal{first: make(chan struct{})}
	c.Out, c.Verbose = out, true
	endless := make(chan error)
	go func() { endless <- rping.Run(ctx, c) }()
	<-out.first
	second := towards(t, s.At, o)
	second.Count = 1
	require.ErrorContains(t, run(toolstest.Context(t), second).err, "the peer does not listen on this port")

	// Pings without an end succeed when they are stopped.
	stop()
	require.NoError(t, <-endless)
	require.Error(t, ctx.Err())
	server := <-s.Ended
	if server.err != nil { // the client may have been between two steps
		require.ErrorContains(t, server.err, "disconnected by peer")
	}
}

// signal closes a channel at the first write.
type signal struct {
	once  sync.Once
	first chan struct{}
}

func (s *signal) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.first) })
	return len(b), nil
}

// TestDebug checks that the addresses of the buffers are printed.
func TestDebug(t *testing.T) {
	o := rping.Defaults()
	o.Debug = true
	s := serve(t, o)
	c := towards(t, s.At, o)
	c.Count = 1
	client := run(toolstest.Context(t), c)
	require.NoError(t, client.err)
	require.Regexp(t, `(?s)rdma_connect successful.*RDMA addr [0-9a-f]+ rkey [0-9a-f]+ len 64.*recv completion`, client.out)
	require.Regexp(t, `(?s)listening on 127.*Received rkey [0-9a-f]+ addr [0-9a-f]+ len 64 from peer`, (<-s.Ended).out)
}

func TestOptions(t *testing.T) {
	dev := toolstest.Device(t, rnic.Options{})
	for _, c := range []struct {
		change func(*rping.Options)
		text   string
	}{
		{func(o *rping.Options) { o.Port = 70000 }, "-p: port 70000"},
		{func(o *rping.Options) { o.Port, o.Client, o.Addr = 0, true, "localhost" }, "-p: a client needs"},
		{func(o *rping.Options) { o.Client = true }, "-a: a client needs"},
		{func(o *rping.Options) { o.Client, o.Addr, o.Persistent = true, "localhost", true }, "-P: only a server"},
		{func(o *rping.Options) { o.Source = "127.0.0.1" }, "-I: is a client's"},
		{func(o *rping.Options) { o.Size = rping.MinSize - 1 }, "-S: invalid size 22 (valid range is 23 to 65535)"},
		{func(o *rping.Options) { o.Size = rping.MaxSize + 1 }, "-S: invalid size 65536"},
		{func(o *rping.Options) { o.Count = -1 }, "-C: invalid count -1"},
		{func(o *rping.Options) { o.Device = nil }, "device: none given"},
	} {
		o := rping.Defaults()
		o.Device = dev
		c.change(&o)
		err := run(toolstest.Context(t), o).err
		var wrong *option.Error
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, c.text)
	}
	for _, c := range []struct {
		change func(*rping.Options)
		text   string
	}{
		{func(o *rping.Options) { o.Addr = "127.77.7.7" }, "cannot be bound to 127.77.7.7"},
		{func(o *rping.Options) { o.Addr = "fe80::1%lo" }, "cannot be bound to fe80::1%lo"},
		{func(o *rping.Options) { o.Client, o.Addr = true, "no such host" }, `-a: "no such host" is neither`},
		{func(o *rping.Options) { o.Client, o.Addr, o.Source = true, "127.0.0.1", "no such host" }, `-I: "no such host" is neither`},
		{func(o *rping.Options) { o.Client, o.Addr = true, "2001:db8::1" }, "connect error"},
	} {
		o := rping.Defaults()
		o.Device = dev
		c.change(&o)
		require.ErrorContains(t, run(toolstest.Context(t), o).err, c.text)
	}
}
