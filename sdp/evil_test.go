package sdp_test

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// TestPlainPeer checks that a standard peer gets the standard flow control whatever was requested,
// byte by byte.
func TestPlainPeer(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		o.ZeroCopy = 100 << 10
		p := newPuppet(t)
		c, err := p.dialed(stack(t, rnic.Options{}, o), o.FlowControl, p.ack(sdp.Credit))
		require.NoError(t, err)
		require.Equal(t, sdp.Credit, c.FlowControl())
		require.NoError(t, c.SetDeadline(time.Now().Add(hang)))
		_, err = c.Write([]byte("hello"))
		require.NoError(t, err)
		h, body := p.next()
		if h.Len == bsdh.HeaderBytes { // a message: there are more receives than the Hello announced for a ring
			h, body = p.next()
		}
		require.Equal(t, bsdh.MIDData, h.MID)
		require.Equal(t, p.heard, h.Seq)
		require.EqualValues(t, bsdh.HeaderBytes+5, h.Len)
		require.Zero(t, h.Flags)
		require.Equal(t, "hello", string(body))
		p.send(bsdh.MIDData, nil, []byte("you, too")...)
		got := make([]byte, 8)
		_, err = io.ReadFull(c, got)
		require.NoError(t, err)
		require.Equal(t, "you, too", string(got))

		go c.Write(make([]byte, 200<<10))
		avail, err := bsdh.ParseExtended[bsdh.SrcAvail](p.receive(bsdh.MIDSrcAvail))
		require.NoError(t, err)
		require.EqualValues(t, 200<<10, avail.Len)
		p.send(bsdh.MIDSendSm, nil)

		p.send(bsdh.MIDDisConn, nil)
		_, err = c.Read(got)
		require.Equal(t, io.EOF, err)
	})
}

// lies are invalid messages of a peer, with the error of the connection.
var lies = []struct {
	name   string
	design sdp.FlowControl
	say    func(p *puppet)
	cause  string
}{
	{"a length beyond the message", sdp.Credit, func(p *puppet) { b := p.frame(bsdh.MIDData, nil, []byte{1}); b[7]++; p.sendRaw(b) }, "of length 18: 17 bytes received"},
	{"a length below the header", sdp.NIC, func(p *puppet) { b := p.frame(bsdh.MIDData, nil, nil); b[7] = 3; p.sendRaw(b) }, "of length 3"},
	{"half a header", sdp.RDMA, func(p *puppet) { p.sendRaw(p.frame(bsdh.MIDData, nil, nil)[:7]) }, "7 bytes arrived"},
	{"nothing", sdp.NIC, func(p *puppet) { p.sendRaw(nil) }, "0 bytes arrived"},
	{"an unknown id", sdp.NIC, func(p *puppet) { p.send(0x42, nil) }, "MID 0x42"},
	{"another number", sdp.Credit, func(p *puppet) { p.seq = 5; p.send(bsdh.MIDData, nil, 1) }, "sequence number 6, want 1"},
	{"credits for what was not sent", sdp.Credit, func(p *puppet) { p.heard = 9; p.send(bsdh.MIDData, nil) }, "acknowledgement of unsent message 9"},
	{"an offset outside of the ring", sdp.NIC, func(p *puppet) { p.write(1<<31-1, []byte{1}) }, "ring write of 1 bytes at offset 2147483647: "},
	{"an offset inside, but not the next", sdp.RDMA, func(p *puppet) { p.write(100, []byte{1}) }, "ring write of 1 bytes at offset 100: "},
	{"more than a window", sdp.NIC, func(p *puppet) { p.hello.Extension.Window = 0; p.write(0, make([]byte, puppetSlot)) }, "exceeds the free receive buffer"},
	{"free room that was never used", sdp.RDMA, func(p *puppet) { p.send(bsdh.MIDRingUpdate, bsdh.RingUpdate{Freed: 99}.Append(nil)) }, "RingUpdate of 99 bytes, more than were sent"},
	{"a ring that shrinks", sdp.NIC, func(p *puppet) { p.send(bsdh.MIDRingChange, bsdh.RingChange{Ring: 1}.Append(nil)) }, "RingChange from"},
	{"data after its end", sdp.NIC, func(p *puppet) { p.send(bsdh.MIDDisConn, nil); p.write(0, []byte{1}) }, "ring write after DisConn"},
	{"two ends", sdp.RDMA, func(p *puppet) { p.send(bsdh.MIDDisConn, nil); p.send(bsdh.MIDDisConn, nil) }, "second DisConn"},
	{"a completion of nothing", sdp.NIC, func(p *puppet) { p.send(bsdh.MIDRdmaWrCompl, bsdh.RdmaCompl{Len: 1 << 30}.Append(nil)) }, "without a matching SinkAvail"},
}

// TestInvalidMessages checks that an invalid message ends the connection with an error that names it, and
// that other connections continue.
func TestInvalidMessages(t *testing.T) {
	e := newEnds(t, rnic.Options{}, sdp.Options{Window: puppetSlot / 2, Buffers: 4, BufferBytes: puppetSlot})
	a, b := e.dial(t)
	for _, lie := range lies {
		t.Run(lie.name, func(t *testing.T) {
			p := newPuppet(t)
			c, err := p.dialed(e.a, lie.design, p.ack(lie.design))
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.SetDeadline(time.Now().Add(hang)))
			lie.say(p)
			for err == nil || err == io.EOF { // earlier data may be read
				_, err = c.Read(make([]byte, 1))
				if err == io.EOF {
					_, err = c.Write([]byte{1})
				}
			}
			require.ErrorIs(t, err, sdp.ErrProtocol)
			require.ErrorContains(t, err, lie.cause)
			require.ErrorContains(t, err, p.addr().String())
			_, again := c.Write([]byte{1})
			require.ErrorIs(t, again, sdp.ErrProtocol)
			require.ErrorIs(t, c.CloseWrite(), sdp.ErrProtocol)
			pingPong(t, a, b, 1000)
		})
	}
}

// TestInvalidHelloAck checks that an invalid HelloAck fails a dial, without leaks.
func TestInvalidHelloAck(t *testing.T) {
	s := stack(t, rnic.Options{}, sdp.Options{})
	for name, lie := range map[string]struct {
		spoil func(a *bsdh.HelloAck)
		cause string
	}{
		"no adverts":           {func(a *bsdh.HelloAck) { a.MaxAdverts = 0 }, "MaxAdverts 0"},
		"no receives":          {func(a *bsdh.HelloAck) { a.Bufs = 0 }, "no receives"},
		"another flow control": {func(a *bsdh.HelloAck) { a.Extension.FlowControl = bsdh.FlowControlRDMA }, "flow control rdma, want nic"},
		"no ring":              {func(a *bsdh.HelloAck) { a.Extension.Ring = 0 }, "ring of 0 bytes"},
		"a ring without end":   {func(a *bsdh.HelloAck) { a.Extension.Ring = 1<<32 - 1 }, "ring of 4294967295 bytes"},
		"a window beyond it":   {func(a *bsdh.HelloAck) { a.Extension.Window = 1 << 30 }, "window of 1073741824 bytes"},
		"tiny buffers":         {func(a *bsdh.HelloAck) { a.Extension, a.ActRcvSz = bsdh.Extension{}, 16 }, "receive buffers of 16 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPuppet(t)
			ack := p.ack(sdp.NIC)
			lie.spoil(&ack)
			_, err := p.dialed(s, sdp.NIC, ack)
			require.ErrorContains(t, err, lie.cause)
			require.ErrorContains(t, err, p.addr().String())
		})
	}
}

// TestMemoryIsNotGivenBack checks that a peer that never replies to a SrcAvailCancel or
// SinkAvailCancel delays a call beyond its deadline, but not for ever.
func TestMemoryIsNotGivenBack(t *testing.T) {
	const size = 200 << 10
	s := stack(t, rnic.Options{}, sdp.Options{ZeroCopy: size})
	s.SetReturnTime(50 * time.Millisecond)
	t.Run("write", func(t *testing.T) {
		p := newPuppet(t)
		c, err := p.dialed(s, sdp.NIC, p.ack(sdp.NIC))
		require.NoError(t, err)
		defer c.Close()
		n, err := c.Write(make([]byte, size))
		require.ErrorIs(t, err, sdp.ErrProtocol)
		require.ErrorContains(t, err, "lent memory not returned within 50ms of the request")
		require.Zero(t, n)
		p.receive(bsdh.MIDSrcAvail)
		p.receive(bsdh.MIDSrcAvailCancel)
	})
	t.Run("read", func(t *testing.T) {
		p := newPuppet(t)
		c, err := p.dialed(s, sdp.NIC, p.ack(sdp.NIC))
		require.NoError(t, err)
		defer c.Close()
		read := make(chan error, 1)
		go func() { // without copies, so that the next Read lends its memory
			_, err := io.ReadFull(c, make([]byte, puppetSlot))
			read <- err
		}()
		p.send(bsdh.MIDSrcAvail, bsdh.SrcAvail{Len: puppetSlot, RKey: p.mr.RKey(), Addr: p.mr.Addr()}.Append(nil))
		p.receive(bsdh.MIDRdmaRdCompl)
		require.NoError(t, <-read)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		_, err = c.Read(make([]byte, size))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, c.SetReadDeadline(time.Time{}))
		_, err = c.Read(make([]byte, size))
		require.ErrorIs(t, err, sdp.ErrProtocol)
		p.receive(bsdh.MIDSinkAvail)
		p.receive(bsdh.MIDSinkAvailCancel)
	})
}

// lendMemory returns a connection whose Write waits for memory that the peer does not return, and
// the error of the Write to come.
func lendMemory(t *testing.T, s *sdp.Stack) (p *puppet, c *sdp.Conn, wrote chan error) {
	p = newPuppet(t)
	c, err := p.dialed(s, sdp.NIC, p.ack(sdp.NIC))
	require.NoError(t, err)
	wrote = make(chan error, 1)
	go func() {
		_, err := c.Write(make([]byte, 200<<10))
		wrote <- err
	}()
	p.receive(bsdh.MIDSrcAvail)
	p.receive(bsdh.MIDSrcAvailCancel)
	for { // until the last message that could wake it has arrived
		if n, waits := c.Heard(); n > 0 && waits {
			return p, c, wrote
		}
		runtime.Gosched()
	}
}

// TestAbortWhileLent checks that aborting a connection does not wait for lent memory.
func TestAbortWhileLent(t *testing.T) {
	for name, end := range map[string]func(s *sdp.Stack, c *sdp.Conn) error{
		"reset":  func(_ *sdp.Stack, c *sdp.Conn) error { return errors.Join(c.SetLinger(0), c.Close()) },
		"linger": func(_ *sdp.Stack, c *sdp.Conn) error { return errors.Join(c.SetLinger(1), c.Close()) },
		"stack":  func(s *sdp.Stack, _ *sdp.Conn) error { return s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := stack(t, rnic.Options{}, sdp.Options{ZeroCopy: 200 << 10})
			s.SetReturnTime(time.Hour)
			_, c, wrote := lendMemory(t, s)
			require.NoError(t, end(s, c))
			select {
			case err := <-wrote:
				require.ErrorIs(t, err, net.ErrClosed)
			case <-soon(t).Done():
				t.Fatal("it waits for the peer")
			}
		})
	}
}

// TestInvalidMessageDuringClose checks that the last call of a closed connection detects its end without
// a further message.
func TestInvalidMessageDuringClose(t *testing.T) {
	s := stack(t, rnic.Options{}, sdp.Options{ZeroCopy: 200 << 10, Linger: time.Hour})
	s.SetReturnTime(time.Hour)
	p, c, wrote := lendMemory(t, s)
	require.NoError(t, c.Close())
	for {
		if _, waits := c.Heard(); waits {
			break
		}
		runtime.Gosched()
	}
	p.send(0x42, nil)
	require.Error(t, <-wrote)
	require.NoError(t, s.Shutdown(soon(t)), "it does not linger")
}

// TestAborted checks that aborting one half after the peer's end is reported to the peer.
func TestAborted(t *testing.T) {
	eachFlowControl(t, func(t *testing.T, o sdp.Options) {
		a, b := newEnds(t, rnic.Options{}, o).dial(t)
		require.NoError(t, a.CloseWrite())
		_, err := io.ReadAll(b)
		require.NoError(t, err)
		require.NoError(t, b.SetLinger(0))
		require.NoError(t, b.Close())
		require.NoError(t, a.SetDeadline(time.Now().Add(hang)))
		_, err = a.Read(make([]byte, 1))
		require.ErrorIs(t, err, sdp.ErrAborted)
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}
