package sdp_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
	"github.com/softrnic/softrnic/verbs"
)

// packetConn returns one on an adapter of its own.
func packetConn(t testing.TB, ro rnic.Options) *sdp.PacketConn {
	t.Helper()
	c, err := stack(t, ro, sdp.Options{}).ListenPacketPort(0)
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(hang)))
	t.Cleanup(func() { c.Close() })
	return c
}

// mapped returns an IPv4 address in IPv6 form, as in *net.UDPAddr.
func mapped(a sdp.Addr) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
}

func addrPort(c net.PacketConn) netip.AddrPort { return c.LocalAddr().(sdp.Addr).AddrPort }

// receive reads a datagram.
func receive(t testing.TB, c net.PacketConn) (string, net.Addr) {
	t.Helper()
	p := make([]byte, 1<<16)
	n, from, err := c.ReadFrom(p)
	require.NoError(t, err)
	return string(p[:n]), from
}

func TestPacketConn(t *testing.T) {
	var a, b net.PacketConn = packetConn(t, rnic.Options{}), packetConn(t, rnic.Options{})
	n, err := a.WriteTo([]byte("hello"), b.LocalAddr())
	require.NoError(t, err)
	require.Equal(t, 5, n)
	text, from := receive(t, b)
	require.Equal(t, "hello", text)
	require.Equal(t, a.LocalAddr(), from)
	require.Equal(t, "sdp", from.Network())
	_, err = b.WriteTo(nil, from) // empty datagrams exist
	require.NoError(t, err)
	text, from = receive(t, a)
	require.Empty(t, text)
	require.Equal(t, b.LocalAddr(), from)

	_, err = a.WriteTo([]byte("to myself"), a.LocalAddr())
	require.NoError(t, err)
	text, from = receive(t, a)
	require.Equal(t, "to myself", text)
	require.Equal(t, a.LocalAddr(), from)

	_, err = a.WriteTo([]byte("by another address"), net.UDPAddrFromAddrPort(addrPort(b)))
	require.NoError(t, err)
	text, _ = receive(t, b)
	require.Equal(t, "by another address", text)
}

// TestPacketSizes checks that every size up to the MTU arrives unchanged, that longer ones are
// refused, and that a datagram longer than the buffer is truncated without effect on the next.
func TestPacketSizes(t *testing.T) {
	a, b := packetConn(t, rnic.Options{}), packetConn(t, rnic.Options{})
	require.Equal(t, 4096, a.MTU())
	p := make([]byte, a.MTU())
	_, _ = rand.NewChaCha8([32]byte{}).Read(p)
	for n := 0; n <= a.MTU(); n += 1 + n/3 {
		_, err := a.WriteTo(p[:n], b.LocalAddr())
		require.NoError(t, err)
		text, _ := receive(t, b)
		require.Equal(t, string(p[:n]), text)
	}
	_, err := a.WriteTo(p, b.LocalAddr())
	require.NoError(t, err)
	text, _ := receive(t, b)
	require.Equal(t, string(p), text)
	_, err = a.WriteTo(append(p, 0), b.LocalAddr())
	require.ErrorIs(t, err, syscall.EMSGSIZE)

	for _, text := range []string{"much too long", "short"} {
		_, err = a.WriteTo([]byte(text), b.LocalAddr())
		require.NoError(t, err)
	}
	short := make([]byte, 4)
	n, _, err := b.ReadFrom(short)
	require.NoError(t, err)
	require.Equal(t, "much", string(short[:n]))
	text, _ = receive(t, b)
	require.Equal(t, "short", text)
	require.EqualValues(t, 1, b.Stats().Truncated)
	require.EqualValues(t, 1, a.Stats().Asked, "once is enough")
}

// TestPacketDeadlines tests deadlines as of any net.Conn: past, future, moved, and none.
func TestPacketDeadlines(t *testing.T) {
	c := packetConn(t, rnic.Options{})
	read := func() error {
		_, _, err := c.ReadFrom(make([]byte, 1))
		return err
	}
	timedOut := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		var e net.Error
		require.ErrorAs(t, err, &e)
		require.True(t, e.Timeout())
	}
	require.NoError(t, c.SetReadDeadline(time.Unix(1, 0)))
	timedOut(read())
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	timedOut(read())
	timedOut(read())
	require.NoError(t, c.SetReadDeadline(time.Time{}))
	ended := make(chan error)
	go func() { ended <- read() }()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	timedOut(<-ended)

	require.NoError(t, c.SetDeadline(time.Unix(1, 0)))
	_, err := c.WriteTo([]byte("x"), c.LocalAddr())
	timedOut(err)
	require.NoError(t, c.SetDeadline(time.Now().Add(hang)))
	_, err = c.WriteTo([]byte("x"), c.LocalAddr())
	require.NoError(t, err)
	require.NoError(t, read())

	// An address without a reply.
	silent := sdp.Addr{AddrPort: netip.AddrPortFrom(silentAdapter(91), 7)}
	require.NoError(t, c.SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
	_, err = c.WriteTo([]byte("x"), silent)
	timedOut(err)
}

// TestPacketClose checks that Close ends waiting calls, and all later ones.
func TestPacketClose(t *testing.T) {
	c := packetConn(t, rnic.Options{})
	silent := sdp.Addr{AddrPort: netip.AddrPortFrom(silentAdapter(92), 7)}
	ended := make(chan error, 3)
	for range 2 {
		go func() {
			_, _, err := c.ReadFrom(make([]byte, 1))
			ended <- err
		}()
	}
	go func() {
		_, err := c.WriteTo([]byte("x"), silent)
		ended <- err
	}()
	require.NoError(t, c.Close())
	for range 3 {
		require.ErrorIs(t, <-ended, net.ErrClosed)
	}
	require.ErrorIs(t, c.Close(), net.ErrClosed)
	require.ErrorIs(t, c.SetDeadline(time.Time{}), net.ErrClosed)
	_, _, err := c.ReadFrom(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = c.WriteTo([]byte("x"), c.LocalAddr())
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestPacketUnreachable checks the error of an unreachable peer.
func TestPacketUnreachable(t *testing.T) {
	a, b := packetConn(t, rnic.Options{}), packetConn(t, rnic.Options{})
	to := b.LocalAddr()
	require.NoError(t, b.Close())
	_, err := a.WriteTo([]byte("x"), to)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorContains(t, err, to.String())
	_, err = a.WriteTo([]byte("x"), net.UDPAddrFromAddrPort(mapped(to.(sdp.Addr))))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorContains(t, err, to.String())
	require.NotContains(t, err.Error(), "::ffff", "the same address in other words")
	_, err = a.WriteTo([]byte("x"), to) // immediately, from the cache
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.EqualValues(t, 1, a.Stats().Refused)

	_, err = a.WriteTo([]byte("x"), sdp.Addr{AddrPort: netip.AddrPortFrom(silentAdapter(93), 7)})
	require.ErrorIs(t, err, syscall.EHOSTUNREACH)
	_, err = a.WriteTo([]byte("x"), sdp.Addr{AddrPort: netip.MustParseAddrPort("127.91.91.95:7")}) // no adapter
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorContains(t, err, "127.91.91.95:4791")
	_, err = a.WriteTo([]byte("x"), &net.UnixAddr{Name: "x"})
	require.ErrorContains(t, err, "not an address of SDP")
	_, err = a.WriteTo([]byte("x"), nil)
	require.ErrorContains(t, err, "not an address of SDP")
	_, err = a.WriteTo([]byte("x"), sdp.Addr{})
	require.Error(t, err)
	_, err = a.WriteTo([]byte("x"), sdp.Addr{AddrPort: netip.MustParseAddrPort("[2001:db8::1]:7")})
	require.Error(t, err)
	require.False(t, errors.Is(err, syscall.EHOSTUNREACH), "not the same family: %v", err)
}

// TestPacketManyPeers exchanges datagrams with several peers in both directions, some of which
// restart.
func TestPacketManyPeers(t *testing.T) {
	const peers, rounds = 20, 50
	center := packetConn(t, rnic.Options{})
	var all sync.WaitGroup
	all.Go(func() { // echoes
		p := make([]byte, center.MTU())
		for range peers * rounds {
			n, from, err := center.ReadFromUDPAddrPort(p)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := center.WriteToUDPAddrPort(p[:n], from); err != nil {
				t.Error(err)
			}
		}
	})
	s := stack(t, rnic.Options{}, sdp.Options{})
	for i := range peers {
		c, err := s.ListenPacketPort(0)
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(hang)))
		all.Go(func() {
			defer c.Close()
			for j := range rounds {
				want := fmt.Sprint(i, " ", j)
				if _, err := c.WriteTo([]byte(want), center.LocalAddr()); err != nil {
					t.Error(err)
				}
				p := make([]byte, 100)
				n, _, err := c.ReadFrom(p)
				if err != nil || string(p[:n]) != want {
					t.Errorf("got %q instead of %q: %v", p[:n], want, err)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, peers*rounds, center.Stats().Received)
	require.EqualValues(t, peers*rounds, center.Stats().Sent)
	require.EqualValues(t, peers, center.Stats().Asked)
}

// TestPacketRestart checks that a peer that restarts at the same port is found as soon as it sends.
func TestPacketRestart(t *testing.T) {
	a := packetConn(t, rnic.Options{})
	s := stack(t, rnic.Options{}, sdp.Options{})
	var port uint16
	for i := range 3 {
		b, err := s.ListenPacketPort(port)
		require.NoError(t, err)
		require.NoError(t, b.SetDeadline(time.Now().Add(hang)))
		port = addrPort(b).Port()
		_, err = b.WriteTo([]byte("here I am"), a.LocalAddr())
		require.NoError(t, err)
		_, from := receive(t, a)
		require.Equal(t, b.LocalAddr(), from)
		_, err = a.WriteTo([]byte("welcome"), from)
		require.NoError(t, err)
		text, _ := receive(t, b)
		require.Equal(t, "welcome", text)
		require.NoError(t, b.Close())
		require.EqualValues(t, i+1, a.Stats().Asked)
	}
}

// TestPacketQueriesAgain checks that an old cache entry is queried again without delaying datagrams,
// and that the failure of a terminated peer is reported.
func TestPacketQueriesAgain(t *testing.T) {
	a, b := packetConn(t, rnic.Options{}), packetConn(t, rnic.Options{})
	write := func() error {
		_, err := a.WriteTo([]byte("x"), b.LocalAddr())
		return err
	}
	require.NoError(t, write())
	a.AgePeers()
	require.NoError(t, write())
	for range 2 {
		_, _ = receive(t, b)
	}
	for a.Stats().Asked < 2 {
		runtime.Gosched()
	}
	require.NoError(t, b.Close())
	a.AgePeers()
	err := write()
	for err == nil { // until the reply has arrived
		err = write()
	}
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// TestPacketPeersAreBounded checks that the least recently used peers are evicted.
func TestPacketPeersAreBounded(t *testing.T) {
	a := packetConn(t, rnic.Options{})
	a.SetMaxPeers(3)
	s := stack(t, rnic.Options{}, sdp.Options{})
	var others []*sdp.PacketConn
	for range 6 {
		c, err := s.ListenPacketPort(0)
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(hang)))
		others = append(others, c)
	}
	for round := range 3 {
		for i, c := range others {
			want := fmt.Sprint(round, i)
			_, err := a.WriteTo([]byte(want), c.LocalAddr())
			require.NoError(t, err)
			text, _ := receive(t, c)
			require.Equal(t, want, text)
			require.LessOrEqual(t, a.Peers(), 3)
		}
	}
	require.EqualValues(t, 18, a.Stats().Asked)
	for range 10 {
		for i := range 3 {
			_, err := a.WriteTo(nil, others[i].LocalAddr())
			require.NoError(t, err)
		}
	}
	require.EqualValues(t, 21, a.Stats().Asked)
}

// TestPacketOtherUDPPort checks that adapters with one address find each other by their datagrams,
// once one has the other's address.
func TestPacketOtherUDPPort(t *testing.T) {
	at := netip.MustParseAddrPort("127.91.91.94:0")
	a := packetConn(t, rnic.Options{Addr: netip.AddrPortFrom(at.Addr(), 4791)})
	b := packetConn(t, rnic.Options{Addr: at, AnyPort: true})
	_, err := b.WriteTo([]byte("hello"), a.LocalAddr())
	require.NoError(t, err)
	_, from := receive(t, a)
	_, err = a.WriteTo([]byte("hello, too"), from)
	require.NoError(t, err)
	text, _ := receive(t, b)
	require.Equal(t, "hello, too", text)
}

// TestPacketLoss checks that arriving datagrams are correct with any faults.
func TestPacketLoss(t *testing.T) {
	o := rnic.Options{Impair: "loss 10% duplicate 5% reorder 10% delay 1ms seed 5"}
	a, b := packetConn(t, o), packetConn(t, o)
	const datagrams = 2000
	var seen atomic.Int64
	last := []byte("the last")
	done := make(chan struct{})
	go func() {
		defer close(done)
		p := make([]byte, b.MTU())
		for {
			n, _, err := b.ReadFrom(p)
			switch {
			case err != nil:
				t.Error(err)
				return
			case bytes.Equal(p[:n], last):
				return
			case n < 4 || !bytes.Equal(p[:n], bytes.Repeat([]byte(fmt.Sprintf("%04d", n)), n/4)):
				t.Errorf("a damaged datagram of %d bytes", n)
			}
			seen.Add(1)
		}
	}()
	for i := range datagrams {
		n := 4 + i%1000*4
		_, err := a.WriteTo(bytes.Repeat([]byte(fmt.Sprintf("%04d", n)), n/4), b.LocalAddr())
		require.NoError(t, err)
		if i%100 == 0 {
			runtime.Gosched() // to let the reader keep up
		}
	}
	for over := false; !over; {
		_, err := a.WriteTo(last, b.LocalAddr())
		require.NoError(t, err)
		select {
		case <-done:
			over = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	require.Positive(t, seen.Load())
	t.Logf("%d of %d arrived", seen.Load(), datagrams)
}

// TestPacketForeign checks that datagrams of other senders than a PacketConn are dropped.
func TestPacketForeign(t *testing.T) {
	a, b := packetConn(t, rnic.Options{}), packetConn(t, rnic.Options{})
	dev := device(t, rnic.Options{})
	pd, err := dev.AllocPD()
	require.NoError(t, err)
	cq, err := dev.CreateCQ(16)
	require.NoError(t, err)
	qp, err := pd.CreateQP(verbs.QPInitAttr{Type: verbs.UD, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 16, MaxInlineData: 64}})
	require.NoError(t, err)
	require.NoError(t, verbs.ActivateUD(qp, 1, 1))
	ah, err := pd.CreateAH(verbs.AHAttr{DGID: verbs.GIDFromAddr(addrPort(b).Addr())})
	require.NoError(t, err)
	qpn, qkey := b.QueuePair()
	send := func(wr verbs.SendWR) {
		wr.Flags, wr.InlineData, wr.AH, wr.RemoteQPN, wr.RemoteQKey = verbs.SendInline, []byte("foreign"), ah, qpn, qkey
		_, err = qp.PostSend([]verbs.SendWR{wr})
		require.NoError(t, err)
	}
	send(verbs.SendWR{Opcode: verbs.WRSend})
	send(verbs.SendWR{Opcode: verbs.WRSendWithImm, Imm: 77})
	_, err = a.WriteTo([]byte("ours"), b.LocalAddr())
	require.NoError(t, err)
	text, _ := receive(t, b)
	require.Equal(t, "ours", text)
	require.EqualValues(t, 2, b.Stats().Foreign)
}

// TestPacketEndsWithStack checks that closing the stack closes open sockets.
func TestPacketEndsWithStack(t *testing.T) {
	s := stack(t, rnic.Options{}, sdp.Options{})
	c, err := s.ListenPacketPort(7)
	require.NoError(t, err)
	_, err = s.ListenPacketPort(7)
	require.ErrorContains(t, err, "port in use")
	require.NoError(t, s.Close())
	_, _, err = c.ReadFrom(nil)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = s.ListenPacketPort(8)
	require.Error(t, err)
}

// TestListenPacketNames: the networks of UDP and a host are accepted as in package net, others
// are not.
func TestListenPacketNames(t *testing.T) {
	s := stack(t, rnic.Options{}, sdp.Options{})
	for _, network := range []string{"sdp", "udp", "udp4"} {
		c, err := s.ListenPacket(network, "0.0.0.0:domain")
		require.NoError(t, err)
		require.EqualValues(t, 53, c.LocalAddr().(sdp.Addr).Port())
		require.NoError(t, c.Close())
	}
	for network, address := range map[string]string{"tcp": ":0", "udp6": "0.0.0.0:0", "udp": "127.0.0.1", "sdp": "192.0.2.1:0"} {
		_, err := s.ListenPacket(network, address)
		var oe *net.OpError
		require.ErrorAs(t, err, &oe, network)
	}
}
