package cmtool_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/cmtool"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/rdmacm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/rnic"
)

const (
	rc = cmtool.RC
	ud = cmtool.UD
)

// talk is the output of the original programs, with and without messages.
type talk struct{ server, client, serverSilent, clientSilent string }

var talks = map[cmtool.Service]talk{
	rc: {
		server: "cmatose: starting server\ninitiating data transfers\ncompleting sends\nreceiving data transfers\n" +
			"data transfers complete\ncmatose: disconnecting\ndisconnected\ntest complete\nreturn status 0\n",
		client: "cmatose: starting client\ncmatose: connecting\nreceiving data transfers\nsending replies\n" +
			"data transfers complete\ntest complete\nreturn status 0\n",
		serverSilent: "cmatose: starting server\ncmatose: disconnecting\ndisconnected\ntest complete\nreturn status 0\n",
		clientSilent: "cmatose: starting client\ncmatose: connecting\ntest complete\nreturn status 0\n",
	},
	ud: {
		server: "udaddy: starting server\nreceiving data transfers\nsending replies\ndata transfers complete\n" +
			"test complete\nreturn status 0\n",
		client: "udaddy: starting client\nudaddy: connecting\ninitiating data transfers\nreceiving data transfers\n" +
			"data transfers complete\ntest complete\nreturn status 0\n",
		serverSilent: "udaddy: starting server\ntest complete\nreturn status 0\n",
		clientSilent: "udaddy: starting client\nudaddy: connecting\ntest complete\nreturn status 0\n",
	},
}

// TestExchange runs server and client with several options and compares the output.
func TestExchange(t *testing.T) {
	for _, c := range []struct {
		service                  cmtool.Service
		connections, count, size int
		space                    cm.PortSpace
	}{
		{rc, 1, 10, 100, cm.TCP}, {rc, 1, 1, 1, cm.TCP}, {rc, 20, 10, 100, cm.TCP}, {rc, 3, 100, 10000, cm.TCP}, {rc, 2, 3, 300000, cm.TCP},
		{rc, 2, 10, 100, cm.IB}, {rc, 3, 0, 100, cm.TCP}, {rc, 3, 10, 0, cm.TCP},
		{ud, 1, 10, 100, cm.UDP}, {ud, 1, 1, 1, cm.UDP}, {ud, 3, 5, 40, cm.UDP}, {ud, 2, 5, 41, cm.UDP}, {ud, 20, 10, 100, cm.UDP},
		{ud, 3, 50, 4096, cm.UDP}, {ud, 2, 0, 100, cm.UDP}, {ud, 2, 10, 0, cm.UDP},
	} {
		t.Run(fmt.Sprintf("%d,%d,%d,%v", c.connections, c.count, c.size, c.space), func(t *testing.T) {
			o := cmtool.Defaults(c.service)
			o.Connections, o.Count, o.Size, o.PortSpace = c.connections, c.count, c.size, c.space
			if c.service == ud {
				o.TOS = 8
			}
			server, client := runBoth(t, o, o)
			require.NoError(t, server.err)
			require.NoError(t, client.err)
			want := talks[c.service]
			if c.count == 0 || c.size == 0 {
				want.server, want.client = want.serverSilent, want.clientSilent
			}
			require.Equal(t, want.server, server.out)
			require.Equal(t, want.client, client.out)
		})
	}
}

// TestRunIsSilent checks that a run without writers and functions in its options prints nothing.
func TestRunIsSilent(t *testing.T) {
	_, m := toolstest.Manager(t)
	o := towards(t, m.Addr(), cmtool.Defaults(rc))
	var refused *cm.RejectError
	require.ErrorAs(t, cmtool.Run(toolstest.Context(t), o), &refused)
}

// TestLoss checks that connections retransmit lost packets.
func TestLoss(t *testing.T) {
	o := cmtool.Defaults(rc)
	o.Connections, o.Size = 10, 9000
	require.NoError(t, o.AckTimeout.Set("12")) // 17 ms
	s, c := o, o
	s.Device = toolstest.Device(t, rnic.Options{Impair: "loss 2% seed 5"})
	c.Device = toolstest.Device(t, rnic.Options{Impair: "loss 2% seed 6"})
	server, client := runBoth(t, s, c)
	require.NoError(t, server.err)
	require.NoError(t, client.err)
}

// TestDatagramLoss checks that lost datagrams are reported: only requests of connection management
// are retransmitted.
func TestDatagramLoss(t *testing.T) {
	o := cmtool.Defaults(ud)
	o.IdleTimeout = 300 * time.Millisecond
	c := o
	c.Device = toolstest.Device(t, rnic.Options{Impair: "drop 4th SEND_ONLY_IMM"})
	server, client := runBoth(t, o, c)
	require.ErrorIs(t, server.err, watch.ErrIdle)
	require.ErrorContains(t, server.err, "connection 0: no progress: 9 of 10 datagrams received; this transport does not retransmit")
	require.ErrorIs(t, client.err, watch.ErrIdle)
	require.ErrorContains(t, client.err, "0 of 10 datagrams received")
	require.Contains(t, client.out, "test complete\nreturn status 1\n")

	o.IdleTimeout = toolstest.HangTimeout
	c = o
	c.Device = toolstest.Device(t, rnic.Options{Impair: "drop 1st UD_SEND_ONLY"})
	_, client = runBoth(t, o, c)
	require.NoError(t, client.err)
}

// TestSidesDiffer checks that the error names the option that must be equal at both ends, with a
// client that sends no parameters.
func TestSidesDiffer(t *testing.T) {
	for _, c := range []struct {
		service        cmtool.Service
		name           string
		change         func(client *cmtool.Options)
		server, client string
	}{
		{rc, "fewer connections", func(o *cmtool.Options) { o.Connections = 1 }, "1 of 2 connections established; give both sides the same -c", ""},
		{rc, "more connections", func(o *cmtool.Options) { o.Connections = 3 }, "", "rejected"},
		{rc, "smaller", func(o *cmtool.Options) { o.Size = 99 }, "", "message longer than 99 bytes; give both sides the same -S"},
		{rc, "larger", func(o *cmtool.Options) { o.Size = 101 }, "", "message of 100 bytes received, want 101; give both sides the same -S"},
		{rc, "more", func(o *cmtool.Options) { o.Count = 11 }, "", "give both sides the same -C"},
		{ud, "fewer connections", func(o *cmtool.Options) { o.Connections = 1 }, "1 of 2 connections established; give both sides the same -c", "no progress"},
		{ud, "smaller", func(o *cmtool.Options) { o.Size = 99 }, "datagram of 99 bytes received, want 100; give both sides the same -S", "no progress"},
		{ud, "larger", func(o *cmtool.Options) { o.Size = 101 }, "0 of 10 datagrams received; this transport does not retransmit, and both sides need the same -C and -S", "no progress"},
		{ud, "fewer", func(o *cmtool.Options) { o.Count = 9 }, "9 of 10 datagrams received", "no progress"},
	} {
		t.Run(fmt.Sprint(c.name, c.service), func(t *testing.T) {
			o := cmtool.Defaults(c.service)
			o.Connections, o.IdleTimeout = 2, 200*time.Millisecond
			co := o
			co.NoTerms = true
			c.change(&co)
			server, client := runBoth(t, o, co)
			for _, side := range []struct {
				outcome
				want string
			}{{server, c.server}, {client, c.client}} {
				if side.want != "" {
					require.ErrorContains(t, side.err, side.want)
					require.Contains(t, side.out, "test complete\nreturn status 1\n")
				}
			}
		})
	}
}

// TestIncompatibleOptions checks that options that must be equal are compared at both ends before the first
// message.
func TestIncompatibleOptions(t *testing.T) {
	for _, c := range []struct {
		service        cmtool.Service
		change         func(client *cmtool.Options)
		server, client string
	}{
		{rc, func(o *cmtool.Options) { o.Connections = 1 }, "-c is 2 here and 1 at the peer", "-c is 1 here and 2 at the peer"},
		{rc, func(o *cmtool.Options) { o.Connections = 3 }, "-c is 2 here and 3 at the peer", "-c is 3 here and 2 at the peer"},
		{rc, func(o *cmtool.Options) { o.Size = 0 }, "-C is 10 here and 0 at the peer, -S is 100 here and 0 at the peer",
			"-C is 0 here and 10 at the peer, -S is 0 here and 100 at the peer"},
		{ud, func(o *cmtool.Options) { o.Connections = 1 }, "-c is 2 here and 1 at the peer", "-c is 1 here and 2 at the peer"},
		{ud, func(o *cmtool.Options) { o.Count, o.Size = 9, 101 }, "-C is 10 here and 9 at the peer, -S is 100 here and 101 at the peer",
			"-C is 9 here and 10 at the peer, -S is 101 here and 100 at the peer"},
	} {
		o := cmtool.Defaults(c.service)
		o.Connections = 2
		co := o
		c.change(&co)
		server, client := runBoth(t, o, co)
		require.ErrorIs(t, server.err, oob.ErrParams)
		require.ErrorContains(t, server.err, c.server)
		require.ErrorIs(t, client.err, oob.ErrParams)
		require.ErrorContains(t, client.err, c.client)
	}
}

// TestNoServer checks the error of a client without a server.
func TestNoServer(t *testing.T) {
	_, m := toolstest.Manager(t)
	client := run(toolstest.Context(t), towards(t, m.Addr(), cmtool.Defaults(rc)))
	var refused *cm.RejectError
	require.ErrorAs(t, client.err, &refused)
	require.Equal(t, "cmatose: starting client\ncmatose: connecting\ntest complete\nreturn status 1\n", client.out)

	client = run(toolstest.Context(t), towards(t, m.Addr(), cmtool.Defaults(ud)))
	var refusedUD *cm.UDRejectError
	require.ErrorAs(t, client.err, &refusedUD)
	require.Equal(t, "udaddy: starting client\nudaddy: connecting\ntest complete\nreturn status 1\n", client.out)
}

func TestOptions(t *testing.T) {
	dev := toolstest.Device(t, rnic.Options{})
	for _, c := range []struct {
		services []cmtool.Service
		change   func(*cmtool.Options)
		option   string
		reason   string
	}{
		{[]cmtool.Service{rc}, func(o *cmtool.Options) { o.Port = 70000 }, "-p", "port 70000"},
		{[]cmtool.Service{ud}, func(o *cmtool.Options) { o.Port = 70000 }, "port", "port 70000"},
		{[]cmtool.Service{rc}, func(o *cmtool.Options) { o.Port, o.Server = 0, "localhost" }, "-p", "a client needs"},
		{[]cmtool.Service{ud}, func(o *cmtool.Options) { o.Port, o.Server = 0, "localhost" }, "port", "a client needs"},
		{[]cmtool.Service{rc}, func(o *cmtool.Options) { o.PortSpace = cm.SDP }, "-P", "SDP is neither tcp nor ib"},
		{[]cmtool.Service{rc, ud}, func(o *cmtool.Options) { o.Connections = 0 }, "-c", "0 connections"},
		{[]cmtool.Service{rc, ud}, func(o *cmtool.Options) { o.Connections = 1<<16 + 1 }, "-c", "65537 connections"},
		{[]cmtool.Service{rc, ud}, func(o *cmtool.Options) { o.Count = -1 }, "-C", "-1 messages"},
		{[]cmtool.Service{rc, ud}, func(o *cmtool.Options) { o.Size = -1 }, "-S", "messages of -1 bytes"},
		{[]cmtool.Service{rc, ud}, func(o *cmtool.Options) { o.Size = 1<<30 + 1 }, "-S", "messages of"},
		{[]cmtool.Service{rc, ud}, func(o *cmtool.Options) { o.Size = math.MaxInt }, "-S", "messages of"},
		{[]cmtool.Service{rc, ud}, func(o *cmtool.Options) { o.Count, o.Size = 1000, 1<<30 }, "-C", "1000 messages of 1073741824 bytes on 1 connections do not fit"},
		{[]cmtool.Service{rc, ud}, func(o *cmtool.Options) { o.Connections, o.Count = 1<<16, 1<<10 }, "-C", "1024 messages of 100 bytes on 65536 connections do not fit"},
		{[]cmtool.Service{rc, ud}, func(o *cmtool.Options) { o.Device = nil }, "device", "none given"},
		{[]cmtool.Service{ud}, func(o *cmtool.Options) { o.Server, o.Size = "127.0.0.1", 4097 }, "-S", "message_size 4097 is larger than active mtu 4096"},
		{[]cmtool.Service{rc}, func(o *cmtool.Options) { o.Count, o.Server, o.Size = 1<<20, "127.0.0.1", 1 }, "-C", "the device takes at most 32768 messages"},
		{[]cmtool.Service{ud}, func(o *cmtool.Options) { o.Count, o.Server, o.Size = 1<<20, "127.0.0.1", 1 }, "-C", "the device takes at most 32752 messages"},
	} {
		for _, service := range c.services {
			o := cmtool.Defaults(service)
			o.Device = dev
			c.change(&o)
			err := run(toolstest.Context(t), o).err
			var wrong *option.Error
			require.ErrorAs(t, err, &wrong, c.reason)
			require.Equal(t, c.option, wrong.Option)
			require.Contains(t, wrong.Reason, c.reason)
		}
	}
	for _, c := range []struct {
		change func(*cmtool.Options)
		text   string
	}{
		{func(o *cmtool.Options) { o.Bind = "127.77.7.7" }, "cannot be bound to 127.77.7.7"},
		{func(o *cmtool.Options) { o.Server, o.Format = "localhost", rdmacm.FormatIP }, `-s: -f ip: "localhost" is not an address`},
		{func(o *cmtool.Options) { o.Server, o.Bind, o.Format = "::1", "127.0.0.1", rdmacm.FormatIPv6 }, `-b: -f ipv6: 127.0.0.1 is not an IPv6 address`},
	} {
		o := cmtool.Defaults(rc)
		o.Device = dev
		c.change(&o)
		require.ErrorContains(t, run(toolstest.Context(t), o).err, c.text)
	}

	// A server determines the MTU when it has a client.
	o := cmtool.Defaults(ud)
	so := o
	so.Size, so.NoTerms = 5000, true
	o.NoTerms = true
	server, client := runBoth(t, so, o)
	require.ErrorContains(t, server.err, "message_size 5000 is larger than active mtu 4096")
	require.Contains(t, server.out, "udaddy: failing connection request\n")
	require.ErrorContains(t, client.err, "rejected")
}

// TestMemoryLimit checks the limit on memory.
func TestMemoryLimit(t *testing.T) {
	o := cmtool.Defaults(rc)
	o.Device = toolstest.Device(t, rnic.Options{})
	o.Connections, o.Size, o.Count = 2, 64, cmtool.MaxMemory/2/64
	require.NoError(t, o.Check())
	o.Count++
	require.ErrorContains(t, o.Check(), "-C: ")
	o.Size = 0
	require.NoError(t, o.Check())
}

// TestIdle checks that the wait for messages that do not arrive, or cannot be sent, ends.
func TestIdle(t *testing.T) {
	o := cmtool.Defaults(rc)
	o.IdleTimeout = 100 * time.Millisecond
	co := o
	co.NoTerms, co.Count, co.IdleTimeout = true, 0, toolstest.HangTimeout // it has no receives
	server, client := runBoth(t, o, co)
	require.NoError(t, client.err, "the server disconnects, which is the end")
	require.ErrorIs(t, server.err, watch.ErrIdle)
	require.ErrorContains(t, server.err, "connection 0: no progress: 0 of 10 messages sent")

	so := o
	so.Count, so.IdleTimeout, o.NoTerms = 1, toolstest.HangTimeout, true
	server, client = runBoth(t, so, o)
	require.ErrorIs(t, client.err, watch.ErrIdle)
	require.ErrorContains(t, client.err, "1 of 10 messages received; give both sides the same -C")
	require.ErrorContains(t, server.err, "disconnected by peer")
}
