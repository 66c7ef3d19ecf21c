package pingpong_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/pingpong"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

var kinds = []pingpong.Kind{pingpong.RC, pingpong.UC, pingpong.UD, pingpong.SRQ}

// record is a line of the originals' output.
func record(which string, colon bool) string {
	separator := ","
	if colon {
		separator = ":"
	}
	return fmt.Sprintf(`  %-16sLID 0x0000, QPN 0x[0-9a-f]{6}, PSN 0x[0-9a-f]{6}%s GID ::ffff:127\.\d+\.\d+\.\d+\n`, which+" address:", separator)
}

// form is the whole output of the originals.
func form(o pingpong.Options) string {
	var b strings.Builder
	b.WriteString(`\A`)
	for _, which := range []string{"local", "remote"} {
		fmt.Fprintf(&b, `(?:%s){%d}`, record(which, o.Kind == pingpong.UD && which == "local"), o.NumQP)
	}
	fmt.Fprintf(&b, `%d bytes in \d+\.\d\d seconds = \d+\.\d\d Mbit/sec\n`, 2*o.Size*o.Iters)
	fmt.Fprintf(&b, `%d iters in \d+\.\d\d seconds = \d+\.\d\d usec/iter\n\z`, o.Iters)
	return b.String()
}

// TestExchange runs every kind of test, polling and sleeping, and compares data and output.
func TestExchange(t *testing.T) {
	for _, k := range kinds {
		for _, events := range []bool{false, true} {
			for _, size := range []int{1, 1000, 70000} {
				o := pingpong.Defaults(k)
				o.Iters, o.Size, o.Events, o.Check = 50, size, events, true
				if k == pingpong.UD {
					o.Size = min(size, 4096)
				}
				if k == pingpong.SRQ {
					o.NumQP = 5
				}
				t.Run(fmt.Sprintf("%s,events=%v,%d", k, events, size), func(t *testing.T) {
					server, client := runBoth(t, o, o)
					require.NoError(t, server.err)
					require.NoError(t, client.err)
					require.Regexp(t, form(o), server.out)
					require.Regexp(t, form(o), client.out)
					require.Equal(t, server.result.Local, client.result.Remote)
					require.Equal(t, client.result.Local, server.result.Remote)
					require.Positive(t, client.result.Elapsed)
				})
			}
		}
	}
}

// TestDepths checks that receives are posted again many times, down to one at a time.
func TestDepths(t *testing.T) {
	for _, k := range kinds {
		for _, depth := range []int{1, 2, 3, 7} {
			if (k == pingpong.UC || k == pingpong.UD) && depth < 2 {
				continue // a message without a receive is not retransmitted
			}
			t.Run(fmt.Sprintf("%s,%d", k, depth), func(t *testing.T) {
				o := pingpong.Defaults(k)
				o.Iters, o.RxDepth, o.NumQP = 30, depth, 1
				server, client := runBoth(t, o, o)
				require.NoError(t, server.err)
				require.NoError(t, client.err)
			})
		}
	}
}

// TestLoss checks that lost packets are retransmitted, also the last acknowledgement.
func TestLoss(t *testing.T) {
	for _, k := range []pingpong.Kind{pingpong.RC, pingpong.SRQ} {
		t.Run(string(k), func(t *testing.T) {
			o := pingpong.Defaults(k)
			o.Iters, o.Check = 60, true
			s, c := o, o
			s.Device = toolstest.Device(t, rnic.Options{Impair: "loss 3% seed 5"})
			c.Device = toolstest.Device(t, rnic.Options{Impair: "loss 3% seed 6"})
			server, client := runBoth(t, s, c)
			require.NoError(t, server.err)
			require.NoError(t, client.err)
		})
	}
}

// TestOpen checks that the device is opened when the peer is known, and closed at the end.
func TestOpen(t *testing.T) {
	o := pingpong.Defaults(pingpong.RC)
	o.Iters = 3
	var opened []verbs.Device
	o.Open = func(at netip.Addr) (verbs.Device, error) {
		require.False(t, at.IsValid(), "the peer is on this machine")
		dev, err := rnic.Open(rnic.Options{})
		opened = append(opened, dev)
		return dev, err
	}
	c := o
	c.Open = func(netip.Addr) (verbs.Device, error) { return rnic.Open(rnic.Options{}) }
	server, client := runBoth(t, o, c)
	require.NoError(t, server.err)
	require.NoError(t, client.err)
	require.Len(t, opened, 1)
	_, err := opened[0].AllocPD()
	require.ErrorIs(t, err, verbs.ErrClosed)
}

// TestIdle checks that a test ends when no messages arrive.
func TestIdle(t *testing.T) {
	for _, k := range []pingpong.Kind{pingpong.UC, pingpong.UD} {
		for _, events := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,events=%v", k, events), func(t *testing.T) {
				t.Parallel()
				o := pingpong.Defaults(k)
				o.IdleTimeout, o.Events = 100*time.Millisecond, events
				s, c := o, o
				s.Device = toolstest.Device(t, rnic.Options{Impair: "drop 40th SEND_ONLY; drop 30th SEND_LAST"})
				server, client := runBoth(t, s, c)
				require.ErrorIs(t, server.err, pingpong.ErrIdle)
				require.ErrorIs(t, client.err, pingpong.ErrIdle)
				require.ErrorContains(t, client.err, "of 1000 messages sent")
				require.ErrorContains(t, client.err, "this transport does not retransmit")
			})
		}
	}
}

// TestParametersDiffer starts both ends with different parameters: both fail before the first
// message and name the difference.
func TestParametersDiffer(t *testing.T) {
	options := func(k pingpong.Kind, change func(*pingpong.Options)) pingpong.Options {
		o := pingpong.Defaults(k)
		if change != nil {
			change(&o)
		}
		return o
	}
	for _, c := range []struct {
		name           string
		server, client pingpong.Options
		want           string // in the server's error
	}{
		{"rc, uc", options(pingpong.RC, nil), options(pingpong.UC, nil), "kind is rc here and uc at the peer"},
		{"uc, rc", options(pingpong.UC, nil), options(pingpong.RC, nil), "kind is uc here and rc at the peer"},
		{"ud, rc", options(pingpong.UD, nil), options(pingpong.RC, nil), "kind is ud here and rc at the peer"},
		{"rc, srq", options(pingpong.RC, nil), options(pingpong.SRQ, nil), "kind is rc here and srq at the peer"},
		{"srq, uc", options(pingpong.SRQ, nil), options(pingpong.UC, nil), "kind is srq here and uc at the peer"},
		{"size", options(pingpong.UD, func(o *pingpong.Options) { o.Size = 512 }), options(pingpong.UD, nil), "-s is 512 here and 1024 at the peer"},
		{"messages", options(pingpong.RC, func(o *pingpong.Options) { o.Iters = 7 }), options(pingpong.RC, nil), "-n is 7 here and 1000 at the peer"},
		{"MTU", options(pingpong.UC, func(o *pingpong.Options) { o.MTU = verbs.MTU256 }), options(pingpong.UC, nil), "-m is 256 here and 1024 at the peer"},
		{"queue pairs", options(pingpong.SRQ, func(o *pingpong.Options) { o.NumQP = 4 }), options(pingpong.SRQ, nil), "-q is 4 here and 16 at the peer"},
		{"check", options(pingpong.RC, func(o *pingpong.Options) { o.Check = true }), options(pingpong.RC, nil), "-c is on here and not set at the peer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server, client := runBoth(t, c.server, c.client)
			require.ErrorIs(t, server.err, oob.ErrParams)
			require.ErrorContains(t, server.err, c.want)
			require.ErrorIs(t, client.err, oob.ErrParams)
			require.NotContains(t, server.out+client.out, "bytes in")
		})
	}
}

// TestPeerDies ends a client in the middle: it reports the measurements until then, and its server
// ends, too, and reports that the client has disconnected.
func TestPeerDies(t *testing.T) {
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			o := pingpong.Defaults(k)
			o.Iters, o.IdleTimeout = 1e9, toolstest.HangTimeout
			dev := toolstest.Device(t, rnic.Options{})
			c := o
			o.Device = dev
			s := serve(t, o)
			c.Server, c.Port, c.Device = "127.0.0.1", s.At, toolstest.Device(t, rnic.Options{})
			ctx, kill := context.WithCancel(toolstest.Context(t))
			ended := make(chan outcome, 1)
			go func() { ended <- run(ctx, c) }()
			require.Eventually(t, func() bool { return dev.(*rnic.Device).Inspect().Counters.RcvdPkts > 100 }, toolstest.HangTimeout, time.Millisecond)
			kill()
			e := <-ended
			require.ErrorIs(t, e.err, context.Canceled)
			require.Contains(t, e.out, "bytes in", "what was measured until then")
			require.Positive(t, e.result.Iters)
			require.ErrorIs(t, (<-s.Ended).err, oob.ErrPeerClosed)
		})
	}
}

func TestOptions(t *testing.T) {
	dev := toolstest.Device(t, rnic.Options{})
	for _, c := range []struct {
		change func(*pingpong.Options)
		text   string
	}{
		{func(o *pingpong.Options) { o.Kind = "xrc" }, `"xrc" is none of rc, uc, ud, srq`},
		{func(o *pingpong.Options) { o.Port = 70000 }, "-p: TCP port 70000"},
		{func(o *pingpong.Options) { o.Port, o.Server = 0, "localhost" }, "-p: a client needs"},
		{func(o *pingpong.Options) { o.Size = 0 }, "-s: messages of 0 bytes"},
		{func(o *pingpong.Options) { o.MTU = 0 }, "-m: the MTU is 256"},
		{func(o *pingpong.Options) { o.RxDepth = 0 }, "-r: 0 receives"},
		{func(o *pingpong.Options) { o.Iters = 0 }, "-n: 0 messages"},
		{func(o *pingpong.Options) { o.SL = 16 }, "-l: service level 16"},
		{func(o *pingpong.Options) { o.NumQP = 256 }, "-q: 256 queue pairs cannot be; give 1 to 255"},
		{func(o *pingpong.Options) { o.NumQP = 2 }, "-q: only srq"},
		{func(o *pingpong.Options) { o.Kind, o.NumQP, o.RxDepth = pingpong.SRQ, 9, 8 }, "-r: 8 receives are too few for 9 queue pairs"},
		{func(o *pingpong.Options) { o.Device = nil }, "device: none given"},
	} {
		o := pingpong.Defaults(pingpong.RC)
		o.Device = dev
		c.change(&o)
		_, err := pingpong.Run(toolstest.Context(t), o)
		var wrong *option.Error
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, c.text)
	}

	// These are options that the device does not support.
	for _, c := range []struct {
		change func(*pingpong.Options)
		text   string
	}{
		{func(o *pingpong.Options) { o.Kind, o.Size = pingpong.UD, 5000 }, "-s: 5000 bytes are more than the port's MTU (4096)"},
		{func(o *pingpong.Options) { o.RxDepth = 1 << 15; o.IBPort = 2 }, "port"},
		{func(o *pingpong.Options) { o.GIDIndex = 7 }, "GID"},
	} {
		o := pingpong.Defaults(pingpong.RC)
		o.Device, o.Port = dev, 0
		c.change(&o)
		_, err := pingpong.Run(toolstest.Context(t), o)
		require.ErrorContains(t, err, c.text)
	}
}

// TestPort4791 checks that port 4791 is required, because the handshake cannot send another one.
func TestPort4791(t *testing.T) {
	o := pingpong.Defaults(pingpong.RC)
	o.Port = 0
	o.Device = toolstest.Device(t, rnic.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0"), AnyPort: true})
	_, err := pingpong.Run(toolstest.Context(t), o)
	require.ErrorContains(t, err, "want 4791: the handshake cannot carry a UDP port")
}
