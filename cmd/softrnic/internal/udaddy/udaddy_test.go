package udaddy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/udaddy"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/rnic"
)

// What the originals print.
const (
	serverTalk = "udaddy: starting server\nreceiving data transfers\nsending replies\ndata transfers complete\n" +
		"test complete\nreturn status 0\n"
	clientTalk = "udaddy: starting client\nudaddy: connecting\ninitiating data transfers\nreceiving data transfers\n" +
		"data transfers complete\ntest complete\nreturn status 0\n"
	serverSilent = "udaddy: starting server\ntest complete\nreturn status 0\n"
	clientSilent = "udaddy: starting client\nudaddy: connecting\ntest complete\nreturn status 0\n"
)

// TestPlay plays in many shapes and compares the output.
func TestPlay(t *testing.T) {
	for _, c := range []struct{ connections, count, size int }{
		{1, 10, 100}, {1, 1, 1}, {3, 5, 40}, {2, 5, 41}, {20, 10, 100}, {3, 50, 4096}, {2, 0, 100}, {2, 10, 0},
	} {
		t.Run(fmt.Sprintf("%d,%d,%d", c.connections, c.count, c.size), func(t *testing.T) {
			o := udaddy.Defaults()
			o.Connections, o.Count, o.Size, o.TOS = c.connections, c.count, c.size, 8
			server, client := play(t, o, o)
			require.NoError(t, server.err)
			require.NoError(t, client.err)
			if c.count == 0 || c.size == 0 {
				require.Equal(t, serverSilent, server.out)
				require.Equal(t, clientSilent, client.out)
				return
			}
			require.Equal(t, serverTalk, server.out)
			require.Equal(t, clientTalk, client.out)
		})
	}
}

// TestLoss is told, since nothing is repeated but the questions of the
// connection manager.
func TestLoss(t *testing.T) {
	o := udaddy.Defaults()
	o.IdleTimeout = 300 * time.Millisecond
	c := o
	c.Device = toolstest.Device(t, rnic.Options{Impair: "drop 4th SEND_ONLY_IMM"})
	server, client := play(t, o, c)
	require.ErrorIs(t, server.err, watch.ErrIdle)
	require.ErrorContains(t, server.err, "connection 0: no progress: 9 of 10 datagrams received; this transport does not retransmit")
	require.ErrorIs(t, client.err, watch.ErrIdle)
	require.ErrorContains(t, client.err, "0 of 10 datagrams received")
	require.Contains(t, client.out, "test complete\nreturn status 1\n")

	o.IdleTimeout = toolstest.HangTimeout
	c = o
	c.Device = toolstest.Device(t, rnic.Options{Impair: "drop 1st UD_SEND_ONLY"})
	_, client = play(t, o, c)
	require.NoError(t, client.err)
}

// TestSidesDiffer says what has to be the same, to a client that sends no parameters.
func TestSidesDiffer(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(client *udaddy.Options)
		server string
	}{
		{"fewer connections", func(o *udaddy.Options) { o.Connections = 1 }, "1 of 2 connections established; give both sides the same -c"},
		{"smaller", func(o *udaddy.Options) { o.Size = 99 }, "datagram of 99 bytes received, want 100; give both sides the same -S"},
		{"larger", func(o *udaddy.Options) { o.Size = 101 }, "0 of 10 datagrams received; this transport does not retransmit, and both sides need the same -C and -S"},
		{"fewer", func(o *udaddy.Options) { o.Count = 9 }, "9 of 10 datagrams received"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := udaddy.Defaults()
			o.Connections, o.IdleTimeout = 2, 200*time.Millisecond
			co := o
			co.NoTerms = true
			c.change(&co)
			server, client := play(t, o, co)
			require.ErrorContains(t, server.err, c.server)
			require.Contains(t, server.out, "test complete\nreturn status 1\n")
			require.ErrorIs(t, client.err, watch.ErrIdle)
		})
	}
}

// TestMisfits are refused at both ends before the first datagram.
func TestMisfits(t *testing.T) {
	for _, c := range []struct {
		change         func(client *udaddy.Options)
		server, client string
	}{
		{func(o *udaddy.Options) { o.Connections = 1 }, "-c is 2 here and 1 at the peer", "-c is 1 here and 2 at the peer"},
		{func(o *udaddy.Options) { o.Count, o.Size = 9, 101 }, "-C is 10 here and 9 at the peer, -S is 100 here and 101 at the peer",
			"-C is 9 here and 10 at the peer, -S is 101 here and 100 at the peer"},
	} {
		o := udaddy.Defaults()
		o.Connections = 2
		co := o
		c.change(&co)
		server, client := play(t, o, co)
		require.ErrorIs(t, server.err, oob.ErrParams)
		require.ErrorContains(t, server.err, c.server)
		require.ErrorIs(t, client.err, oob.ErrParams)
		require.ErrorContains(t, client.err, c.client)
	}
}

// TestNobody serves datagrams.
func TestNobody(t *testing.T) {
	_, m := toolstest.Manager(t)
	client := run(toolstest.Context(t), towards(t, m.Addr(), udaddy.Defaults()))
	var refused *cm.UDRejectError
	require.ErrorAs(t, client.err, &refused)
	require.Equal(t, "udaddy: starting client\nudaddy: connecting\ntest complete\nreturn status 1\n", client.out)
}

func TestOptions(t *testing.T) {
	dev := toolstest.Device(t, rnic.Options{})
	for _, c := range []struct {
		change func(*udaddy.Options)
		text   string
	}{
		{func(o *udaddy.Options) { o.Port = 70000 }, "port: port 70000"},
		{func(o *udaddy.Options) { o.Port, o.Server = 0, "localhost" }, "port: a client needs"},
		{func(o *udaddy.Options) { o.Connections = 0 }, "-c: 0 connections"},
		{func(o *udaddy.Options) { o.Count = -1 }, "-C: -1 messages"},
		{func(o *udaddy.Options) { o.Size = -1 }, "-S: messages of -1 bytes"},
		{func(o *udaddy.Options) { o.Connections, o.Count = 1<<16, 1<<10 }, "-C: 1024 messages of 100 bytes on 65536 connections do not fit"},
		{func(o *udaddy.Options) { o.Device = nil }, "device: none given"},
		{func(o *udaddy.Options) { o.Server, o.Size = "127.0.0.1", 4097 }, "-S: message_size 4097 is larger than active mtu 4096"},
		{func(o *udaddy.Options) { o.Count, o.Server, o.Size = 1<<20, "127.0.0.1", 1 }, "-C: the device takes at most"},
	} {
		o := udaddy.Defaults()
		o.Device = dev
		c.change(&o)
		err := run(toolstest.Context(t), o).err
		var wrong *option.Error
		require.ErrorAs(t, err, &wrong, c.text)
		require.ErrorContains(t, err, c.text)
	}

	// What a server finds out when a client is there.
	o := udaddy.Defaults()
	so := o
	so.Size, o.NoTerms = 5000, true
	server, client := play(t, so, o)
	require.ErrorContains(t, server.err, "message_size 5000 is larger than active mtu 4096")
	require.Contains(t, server.out, "udaddy: failing connection request\n")
	require.ErrorContains(t, client.err, "rejected")
}
