package ucmatose_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/ucmatose"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/rnic"
)

// What the originals print.
const (
	serverTalk = "cmatose: starting server\ninitiating data transfers\ncompleting sends\nreceiving data transfers\n" +
		"data transfers complete\ncmatose: disconnecting\ndisconnected\ntest complete\nreturn status 0\n"
	clientTalk = "cmatose: starting client\ncmatose: connecting\nreceiving data transfers\nsending replies\n" +
		"data transfers complete\ntest complete\nreturn status 0\n"
	serverSilent = "cmatose: starting server\ncmatose: disconnecting\ndisconnected\ntest complete\nreturn status 0\n"
	clientSilent = "cmatose: starting client\ncmatose: connecting\ntest complete\nreturn status 0\n"
)

// TestPlay plays in many shapes and compares the output.
func TestPlay(t *testing.T) {
	for _, c := range []struct {
		connections, count, size int
		space                    cm.PortSpace
	}{
		{1, 10, 100, cm.TCP}, {1, 1, 1, cm.TCP}, {20, 10, 100, cm.TCP}, {3, 100, 10000, cm.TCP}, {2, 3, 300000, cm.TCP}, {2, 10, 100, cm.IB},
		{3, 0, 100, cm.TCP}, {3, 10, 0, cm.TCP},
	} {
		t.Run(fmt.Sprintf("%d,%d,%d,%v", c.connections, c.count, c.size, c.space), func(t *testing.T) {
			o := ucmatose.Defaults()
			o.Connections, o.Count, o.Size, o.PortSpace = c.connections, c.count, c.size, c.space
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

// TestLoss repeats what gets lost.
func TestLoss(t *testing.T) {
	o := ucmatose.Defaults()
	o.Connections, o.Size = 10, 9000
	require.NoError(t, o.AckTimeout.Set("12")) // 17 ms
	s, c := o, o
	s.Device = toolstest.Device(t, rnic.Options{Impair: "loss 2% seed 5"})
	c.Device = toolstest.Device(t, rnic.Options{Impair: "loss 2% seed 6"})
	server, client := play(t, s, c)
	require.NoError(t, server.err)
	require.NoError(t, client.err)
}

// TestSidesDiffer says what has to be the same, to a client that sends no parameters.
func TestSidesDiffer(t *testing.T) {
	for _, c := range []struct {
		name           string
		change         func(client *ucmatose.Options)
		server, client string
	}{
		{"fewer connections", func(o *ucmatose.Options) { o.Connections = 1 }, "1 of 2 connections established; give both sides the same -c", ""},
		{"more connections", func(o *ucmatose.Options) { o.Connections = 3 }, "", "rejected"},
		{"smaller", func(o *ucmatose.Options) { o.Size = 99 }, "", "message longer than 99 bytes; give both sides the same -S"},
		{"larger", func(o *ucmatose.Options) { o.Size = 101 }, "", "message of 100 bytes received, want 101; give both sides the same -S"},
		{"more", func(o *ucmatose.Options) { o.Count = 11 }, "", "give both sides the same -C"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := ucmatose.Defaults()
			o.Connections, o.IdleTimeout = 2, 200*time.Millisecond
			co := o
			co.NoTerms = true
			c.change(&co)
			server, client := play(t, o, co)
			if c.server != "" {
				require.ErrorContains(t, server.err, c.server)
				require.Contains(t, server.out, "test complete\nreturn status 1\n")
			}
			if c.client != "" {
				require.ErrorContains(t, client.err, c.client)
				require.Contains(t, client.out, "test complete\nreturn status 1\n")
			}
		})
	}
}

// TestMisfits are refused at both ends before the first message.
func TestMisfits(t *testing.T) {
	for _, c := range []struct {
		change         func(client *ucmatose.Options)
		server, client string
	}{
		{func(o *ucmatose.Options) { o.Connections = 1 }, "-c is 2 here and 1 at the peer", "-c is 1 here and 2 at the peer"},
		{func(o *ucmatose.Options) { o.Connections = 3 }, "-c is 2 here and 3 at the peer", "-c is 3 here and 2 at the peer"},
		{func(o *ucmatose.Options) { o.Size = 0 }, "-C is 10 here and 0 at the peer, -S is 100 here and 0 at the peer",
			"-C is 0 here and 10 at the peer, -S is 0 here and 100 at the peer"},
	} {
		o := ucmatose.Defaults()
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

// TestNobody listens.
func TestNobody(t *testing.T) {
	_, m := toolstest.Manager(t)
	client := run(toolstest.Context(t), towards(t, m.Addr(), ucmatose.Defaults()))
	var refused *cm.RejectError
	require.ErrorAs(t, client.err, &refused)
	require.Equal(t, "cmatose: starting client\ncmatose: connecting\ntest complete\nreturn status 1\n", client.out)
}

func TestOptions(t *testing.T) {
	dev := toolstest.Device(t, rnic.Options{})
	for _, c := range []struct {
		change func(*ucmatose.Options)
		text   string
	}{
		{func(o *ucmatose.Options) { o.Port = 70000 }, "-p: port 70000"},
		{func(o *ucmatose.Options) { o.Port, o.Server = 0, "localhost" }, "-p: a client needs"},
		{func(o *ucmatose.Options) { o.PortSpace = cm.SDP }, "-P: SDP is neither tcp nor ib"},
		{func(o *ucmatose.Options) { o.Connections = 0 }, "-c: 0 connections"},
		{func(o *ucmatose.Options) { o.Count = -1 }, "-C: -1 messages"},
		{func(o *ucmatose.Options) { o.Size = -1 }, "-S: messages of -1 bytes"},
		{func(o *ucmatose.Options) { o.Size = 1<<30 + 1 }, "-S: messages of"},
		{func(o *ucmatose.Options) { o.Count, o.Size = 1000, 1<<30 }, "-C: 1000 messages of 1073741824 bytes on 1 connections do not fit"},
		{func(o *ucmatose.Options) { o.Connections, o.Count = 1<<16, 1<<10 }, "do not fit"},
		{func(o *ucmatose.Options) { o.Device = nil }, "device: none given"},
		{func(o *ucmatose.Options) { o.Count, o.Server, o.Size = 1<<20, "127.0.0.1", 1 }, "-C: the device takes at most"},
	} {
		o := ucmatose.Defaults()
		o.Device = dev
		c.change(&o)
		err := run(toolstest.Context(t), o).err
		var wrong *option.Error
		require.ErrorAs(t, err, &wrong, c.text)
		require.ErrorContains(t, err, c.text)
	}
	for _, c := range []struct {
		change func(*ucmatose.Options)
		text   string
	}{
		{func(o *ucmatose.Options) { o.Bind = "127.77.7.7" }, "cannot be bound to 127.77.7.7"},
		{func(o *ucmatose.Options) { o.Server, o.Format = "localhost", rdmacm.FormatIP }, `-s: -f ip: "localhost" is not an address`},
		{func(o *ucmatose.Options) { o.Server, o.Bind, o.Format = "::1", "127.0.0.1", rdmacm.FormatIPv6 }, `-b: -f ipv6: 127.0.0.1 is not an IPv6 address`},
	} {
		o := ucmatose.Defaults()
		o.Device = dev
		c.change(&o)
		require.ErrorContains(t, run(toolstest.Context(t), o).err, c.text)
	}
}

// TestIdle ends the waiting for messages that do not come, or cannot go.
func TestIdle(t *testing.T) {
	o := ucmatose.Defaults()
	o.IdleTimeout = 100 * time.Millisecond
	co := o
	co.NoTerms, co.Count, co.IdleTimeout = true, 0, toolstest.HangTimeout // it has no receives
	server, client := play(t, o, co)
	require.NoError(t, client.err, "the server disconnects, which is the end")
	require.ErrorIs(t, server.err, watch.ErrIdle)
	require.ErrorContains(t, server.err, "connection 0: no progress: 0 of 10 messages sent")

	so := o
	so.Count, so.IdleTimeout, o.NoTerms = 1, toolstest.HangTimeout, true
	server, client = play(t, so, o)
	require.ErrorIs(t, client.err, watch.ErrIdle)
	require.ErrorContains(t, client.err, "1 of 10 messages received; give both sides the same -C")
	require.ErrorContains(t, server.err, "disconnected by peer")
}
