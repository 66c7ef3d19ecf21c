package perftest_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/perftest"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// caller is a peer that connects by RDMA CM and is none of our programs.
type caller struct {
	m  *cm.Manager
	pd verbs.PD
	cq verbs.CQ
	qp verbs.QP
}

func newCaller(t *testing.T) *caller {
	t.Helper()
	dev, m := toolstest.Manager(t)
	c := &caller{m: m}
	var err error
	c.pd, err = dev.AllocPD()
	require.NoError(t, err)
	c.cq, err = dev.CreateCQ(16)
	require.NoError(t, err)
	c.qp, err = c.pd.CreateQP(verbs.QPInitAttr{Type: verbs.RC, SendCQ: c.cq, RecvCQ: c.cq, SelectiveSignaling: true,
		Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 64}})
	require.NoError(t, err)
	return c
}

// hostOf returns the address of a device and a port.
func hostOf(t *testing.T, dev verbs.Device, port int) netip.AddrPort {
	gid, err := dev.QueryGID(1, 0)
	require.NoError(t, err)
	return netip.AddrPortFrom(gid.GID.Addr(), uint16(port))
}

// TestInvalidCMClient checks that a client that sends invalid messages, or none, is dropped, and that
// the next one is served.
func TestInvalidCMClient(t *testing.T) {
	for _, c := range []struct {
		name, text string
		gone       bool
		kind       error
		why        string
	}{
		{"silence", "", false, oob.ErrTimeout, "peer timed out: no reply within"},
		{"hang up", "", true, oob.ErrPeerClosed, "see the peer's output"},
		{"text", "six point zero si", false, oob.ErrProtocol, "message of 17 bytes, want 16"},
		{"no version", "six point zero s", false, oob.ErrProtocol, "is not a version of perftest"},
		{"old", "5.33" + strings.Repeat("\x00", 12), false, perftest.ErrVersion, "version 5.33"},
		{"too long", strings.Repeat("x", 60), false, oob.ErrPeerClosed, ""}, // the queue pair enters the error state
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := defaults("write_bw")
			o.RDMACM, o.HandshakeTimeout = true, toolstest.ServerTimeout(c.kind == oob.ErrTimeout)
			o.Device = toolstest.Device(t, rnic.Options{})
			s := serve(t, o)
			at := hostOf(t, o.Device, s.At)
			bad := newCaller(t)
			conn, err := bad.m.Dial(toolstest.Context(t), at, bad.qp, cm.DialOptions{})
			require.NoError(t, err)
			if c.text != "" {
				_, err := bad.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: []byte(c.text)}})
				require.NoError(t, err)
			}
			if c.gone {
				require.NoError(t, conn.Disconnect(toolstest.Context(t), nil))
			}
			err = s.Next(t)
			if c.why != "" {
				require.ErrorIs(t, err, c.kind)
				require.ErrorContains(t, err, c.why)
			}

			o.HandshakeTimeout = toolstest.HangTimeout
			o.Server, o.Port, o.Device = at.Addr().String(), s.At, toolstest.Device(t, rnic.Options{})
			client := run(toolstest.Context(t), o)
			require.NoError(t, client.err)
			require.NoError(t, (<-s.Ended).err)
		})
	}
}

// connect simulates a client up to its first keys, checks the length of the replies, and returns
// the last one.
func (c *caller) connect(t *testing.T, at netip.AddrPort, version string, keys []byte) (*cm.Conn, []byte) {
	t.Helper()
	mr, err := c.pd.RegMR(make([]byte, 64), verbs.AccessLocalWrite)
	require.NoError(t, err)
	post := func(qp verbs.QP) error {
		_, err := qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{mr.SGE(0, 64)}}})
		return err
	}
	conn, err := c.m.Dial(toolstest.Context(t), at, c.qp, cm.DialOptions{Prepare: post})
	require.NoError(t, err)
	for _, m := range []string{version + strings.Repeat("\x00", 12), "\x00\x00\x10\x00", "\x00\x00\x00\x40", "5\x00", string(keys)} {
		_, err := c.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: []byte(m)}})
		require.NoError(t, err)
		var wc [1]verbs.WC
		_, err = c.cq.PollWait(toolstest.Context(t), wc[:])
		require.NoError(t, err)
		require.NoError(t, wc[0].Err())
		require.EqualValues(t, len(m), wc[0].ByteLen)
		require.NoError(t, post(c.qp))
	}
	return conn, mr.Bytes()[:len(keys)]
}

// TestNewerOriginalIsServed checks that a client with the longer keys of perftest 6.29 is served
// with such.
func TestNewerOriginalIsServed(t *testing.T) {
	o := defaults("write_bw")
	o.CommRDMACM, o.Device = true, toolstest.Device(t, rnic.Options{})
	s := serve(t, o)
	original := newCaller(t)
	keys := perftest.Keys{OutReads: 1, QPN: original.qp.Num(), GID: verbs.GIDFromAddr(original.m.Addr().Addr())}
	conn, answer := original.connect(t, hostOf(t, o.Device, s.At), "6.29", keys.AppendLong(nil))
	ours, err := perftest.ParseKeysBinary(answer)
	require.NoError(t, err)
	require.Equal(t, hostOf(t, o.Device, 0).Addr(), ours.GID.Addr())
	require.NoError(t, conn.Disconnect(toolstest.Context(t), nil))
	require.ErrorIs(t, s.Next(t), oob.ErrPeerClosed)
}

// TestLeavesBeforeConnecting checks that the server does not wait for a client that disconnects
// before it connects its queue pairs.
func TestLeavesBeforeConnecting(t *testing.T) {
	o := defaults("write_bw")
	o.RDMACM, o.HandshakeTimeout, o.Device = true, 10*toolstest.HangTimeout, toolstest.Device(t, rnic.Options{})
	s := serve(t, o)
	conn, _ := newCaller(t).connect(t, hostOf(t, o.Device, s.At), "6.06", make([]byte, perftest.KeysBinaryLen))
	require.NoError(t, conn.Disconnect(toolstest.Context(t), nil))
	err := s.Next(t)
	require.ErrorIs(t, err, oob.ErrPeerClosed)
	require.ErrorContains(t, err, "connect to its queue pairs")
}

// TestRDMAServers checks the errors for servers that do not exist or send nothing.
func TestRDMAServers(t *testing.T) {
	silent := newCaller(t)
	l, err := silent.m.Listen(0, cm.ListenOptions{})
	require.NoError(t, err)
	o := defaults("send_bw")
	o.RDMACM, o.HandshakeTimeout = true, 300*time.Millisecond
	o.Server, o.Port, o.Device = l.Addr().Addr().String(), int(l.Addr().Port()), toolstest.Device(t, rnic.Options{})
	ended := make(chan outcome)
	go func() { ended <- run(toolstest.Context(t), o) }()
	q, err := l.Accept(toolstest.Context(t))
	require.NoError(t, err)
	receive := func(qp verbs.QP) error {
		mr, err := silent.pd.RegMR(make([]byte, 64), verbs.AccessLocalWrite)
		require.NoError(t, err)
		_, err = qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{mr.SGE(0, 64)}}})
		return err
	}
	_, err = q.Accept(toolstest.Context(t), silent.qp, cm.AcceptOptions{Prepare: receive})
	require.NoError(t, err)
	require.ErrorIs(t, (<-ended).err, oob.ErrTimeout)

	require.NoError(t, l.Close())
	o.HandshakeTimeout, o.Device = toolstest.HangTimeout, toolstest.Device(t, rnic.Options{})
	e := run(toolstest.Context(t), o)
	var refused *cm.RejectError
	require.ErrorAs(t, e.err, &refused)
	require.Equal(t, cm.InvalidServiceID, refused.Reason)
}
