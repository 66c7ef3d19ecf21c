package pingpong_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/tools/pingpong"
	"github.com/softrnic/softrnic/internal/tools/toolstest"
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

// TestPlay plays every kind against itself, polling and sleeping, and compares
// data and output.
func TestPlay(t *testing.T) {
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
					server, client := play(t, o, o)
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

// TestDepths posts receives anew many times, down to one at a time.
func TestDepths(t *testing.T) {
	for _, k := range kinds {
		for _, depth := range []int{1, 2, 3, 7} {
			if (k == pingpong.UC || k == pingpong.UD) && depth < 2 {
				continue // nothing repeats what finds no receive
			}
			t.Run(fmt.Sprintf("%s,%d", k, depth), func(t *testing.T) {
				o := pingpong.Defaults(k)
				o.Iters, o.RxDepth, o.NumQP = 30, depth, 1
				server, client := play(t, o, o)
				require.NoError(t, server.err)
				require.NoError(t, client.err)
			})
		}
	}
}

// TestLoss repeats what gets lost, to the last acknowledgement.
func TestLoss(t *testing.T) {
	for _, k := range []pingpong.Kind{pingpong.RC, pingpong.SRQ} {
		t.Run(string(k), func(t *testing.T) {
			o := pingpong.Defaults(k)
			o.Iters, o.Check = 60, true
			s, c := o, o
			s.Device = toolstest.Device(t, rnic.Options{Impair: "loss 3% seed 5"})
			c.Device = toolstest.Device(t, rnic.Options{Impair: "loss 3% seed 6"})
			server, client := play(t, s, c)
			require.NoError(t, server.err)
			require.NoError(t, client.err)
		})
	}
}

// TestOpen opens the device when the peer is known, and closes it.
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
	server, client := play(t, o, c)
	require.NoError(t, server.err)
	require.NoError(t, client.err)
	require.Len(t, opened, 1)
	_, err := opened[0].AllocPD()
	require.ErrorIs(t, err, verbs.ErrClosed)
}

// TestWrongData is found on both sides: the client sends without Check what
// the server looks for, and the server never sends what the client looks for.
func TestWrongData(t *testing.T) {
	plain, checking := pingpong.Defaults(pingpong.RC), pingpong.Defaults(pingpong.RC)
	plain.Iters, checking.Iters = 5, 5
	checking.Check = true
	server, client := play(t, checking, plain)
	require.NoError(t, client.err)
	var wrong *pingpong.DataError
	require.ErrorAs(t, server.err, &wrong)
	require.Equal(t, &pingpong.DataError{Page: 0, Offset: 0, Got: 0x7b, Want: 0}, wrong)
	require.ErrorContains(t, server.err, "invalid data in page 0")
	require.Positive(t, server.result.Elapsed, "the result is there, too")
}

// TestIdle ends when messages stop coming.
func TestIdle(t *testing.T) {
	for _, k := range []pingpong.Kind{pingpong.UC, pingpong.UD} {
		for _, events := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,events=%v", k, events), func(t *testing.T) {
				t.Parallel()
				o := pingpong.Defaults(k)
				o.Idle, o.Events = 100*time.Millisecond, events
				s, c := o, o
				s.Device = toolstest.Device(t, rnic.Options{Impair: "drop 40th SEND_ONLY; drop 30th SEND_LAST"})
				server, client := play(t, s, c)
				require.ErrorIs(t, server.err, pingpong.ErrIdle)
				require.ErrorIs(t, client.err, pingpong.ErrIdle)
				require.ErrorContains(t, client.err, "of 1000 messages sent")
				require.ErrorContains(t, client.err, "what gets lost on the way is not repeated")
			})
		}
	}
}

// TestSizesDiffer says so.
func TestSizesDiffer(t *testing.T) {
	for _, k := range []pingpong.Kind{pingpong.RC, pingpong.UD} {
		o := pingpong.Defaults(k)
		o.Size = 512
		c := o
		c.Size = 256
		o.Idle, c.Idle = time.Second, time.Second
		server, _ := play(t, o, c)
		require.ErrorContains(t, server.err, "a message of 256 bytes came, and they are 512; give both sides the same -s", k)
	}
}

func TestOptions(t *testing.T) {
	dev := toolstest.Device(t, rnic.Options{})
	for _, c := range []struct {
		change func(*pingpong.Options)
		text   string
	}{
		{func(o *pingpong.Options) { o.Kind = "xrc" }, `"xrc" is none of rc, uc, ud, srq`},
		{func(o *pingpong.Options) { o.Port = 70000 }, "-p: 70000 is no TCP port"},
		{func(o *pingpong.Options) { o.Port, o.Server = 0, "localhost" }, "-p: a client needs"},
		{func(o *pingpong.Options) { o.Size = 0 }, "-s: messages of 0 bytes"},
		{func(o *pingpong.Options) { o.MTU = 0 }, "-m: the MTU is 256"},
		{func(o *pingpong.Options) { o.RxDepth = 0 }, "-r: 0 receives"},
		{func(o *pingpong.Options) { o.Iters = 0 }, "-n: 0 messages"},
		{func(o *pingpong.Options) { o.SL = 16 }, "-l: service level 16"},
		{func(o *pingpong.Options) { o.NumQP = 256 }, "-q: 256 queue pairs cannot be; give 1 to 255"},
		{func(o *pingpong.Options) { o.NumQP = 2 }, "-q: only srq"},
		{func(o *pingpong.Options) { o.Kind, o.NumQP, o.RxDepth = pingpong.SRQ, 9, 8 }, "-r: 8 receives are too few for 9 queue pairs"},
		{func(o *pingpong.Options) { o.Device = nil }, "device: there is none"},
	} {
		o := pingpong.Defaults(pingpong.RC)
		o.Device = dev
		c.change(&o)
		_, err := pingpong.Run(toolstest.Soon(t), o)
		var wrong *pingpong.OptionError
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, c.text)
	}

	// What the device has no means for.
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
		_, err := pingpong.Run(toolstest.Soon(t), o)
		require.ErrorContains(t, err, c.text)
	}
}

// TestPort4791 is needed, for the handshake has no word for another.
func TestPort4791(t *testing.T) {
	o := pingpong.Defaults(pingpong.RC)
	o.Port = 0
	o.Device = toolstest.Device(t, rnic.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0"), AnyPort: true})
	_, err := pingpong.Run(toolstest.Soon(t), o)
	require.ErrorContains(t, err, "the handshake has no word for a port: it has to be 4791")
}
