package sdp

import (
	"fmt"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/sdp/internal/flow"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// connection makes the resources of a connection and its core; receives are
// posted by prepare. The memory is put into cfg.
func (s *Stack) connection(cfg *protocol.Config) (c *Conn, err error) {
	c = &Conn{
		stack: s, zeroCopy: s.options.ZeroCopy, lingering: s.options.Linger, gone: make(chan struct{}),
		keepAlive: newKeepAlive(s.options.KeepAlive),
		torn:      newDeadline(), readDeadline: newDeadline(), writeLimit: newDeadline(), urgentSignal: make(chan struct{}, 1),
	}
	defer func() {
		if err != nil {
			c.free()
			c = nil
			err = fmt.Errorf("a connection's resources: %w", err)
		}
	}()
	if cfg.Send, err = c.register(cfg.SendBytes(), 0); err != nil {
		return
	}
	if cfg.Slots, err = c.register(cfg.SlotBytes(), verbs.AccessLocalWrite); err != nil {
		return
	}
	if n := cfg.RingBytes(); n > 0 {
		if cfg.Ring, err = c.register(n, verbs.AccessLocalWrite|verbs.AccessRemoteWrite); err != nil {
			return
		}
	}
	if c.cq, err = s.channel.CreateCQ(cfg.SendQueue() + cfg.ReceiveQueue()); err != nil {
		return
	}
	c.qp, err = s.pd.CreateQP(verbs.QPInitAttr{
		Type: verbs.RC, SendCQ: c.cq, RecvCQ: c.cq,
		Cap: verbs.QPCap{
			MaxSendWR: cfg.SendQueue(), MaxRecvWR: cfg.ReceiveQueue(),
			MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: protocol.Inline,
		},
		SelectiveSignaling: true,
		NoCredits:          cfg.Design != flow.NIC, // the others count receives themselves
	})
	if err != nil {
		return
	}
	c.cfg, c.core = *cfg, protocol.New(*cfg)
	return c, nil
}

// establish is when the peer has agreed: from now on the connection ends by
// teardown, and with the stack.
func (c *Conn) establish(conn *cm.Conn) {
	c.cmConn, c.local, c.remote = conn, Addr{conn.LocalAddr()}, Addr{conn.RemoteAddr()}
	c.stack.enter(c)
}

// prepare posts the first receives, as package cm wants it.
func (c *Conn) prepare(verbs.QP) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.qp.PostRecv(c.core.Receives())
	c.core.Posted()
	return err
}
