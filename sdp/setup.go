package sdp

import (
	"fmt"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/internal/progress"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// setEstablished records that the peer has accepted. From then on the connection ends by
// teardown, and with the stack.
func (c *Conn) setEstablished(conn *cm.Conn) {
	c.cmConn, c.local, c.remote = conn, Addr{conn.LocalAddr()}, Addr{conn.RemoteAddr()}
	c.stack.addConn(c)
}

// newConn allocates the resources of a connection and its core, and stores the memory in cfg.
// postInitialReceives posts the receives.
func (s *Stack) newConn(cfg *protocol.Config) (c *Conn, err error) {
	c = &Conn{
		stack: s, zeroCopy: s.options.ZeroCopy, lingerTime: s.options.Linger, done: make(chan struct{}),
		keepAlive:   newKeepAlive(s.options.KeepAlive),
		endDeadline: newDeadline(), readDeadline: newDeadline(), writeDeadline: newDeadline(), urgentSignal: make(chan struct{}, 1),
	}
	c.progress = progress.New(&c.mu, (*source)(c))
	defer func() {
		if err != nil {
			c.freeResources()
			c = nil
			err = fmt.Errorf("allocate connection resources: %w", err)
		}
	}()
	if cfg.Send, err = c.registerRegion(cfg.SendBytes(), 0); err != nil {
		return
	}
	if cfg.Slots, err = c.registerRegion(cfg.SlotBytes(), verbs.AccessLocalWrite); err != nil {
		return
	}
	if n := cfg.RingBytes(); n > 0 {
		if cfg.Ring, err = c.registerRegion(n, verbs.AccessLocalWrite|verbs.AccessRemoteWrite); err != nil {
			return
		}
	}
	if c.cq, err = s.channel.CreateCQ(cfg.SendQueue() + cfg.ReceiveQueue()); err != nil {
		return
	}
	c.arrived.CQ = c.cq
	c.qp, err = s.pd.CreateQP(verbs.QPInitAttr{
		Type: verbs.RC, SendCQ: c.cq, RecvCQ: c.cq,
		Cap: verbs.QPCap{
			MaxSendWR: cfg.SendQueue(), MaxRecvWR: cfg.ReceiveQueue(),
			MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: protocol.MaxInline,
		},
		SelectiveSignaling: true,
		NoCredits:          cfg.FlowControl != flow.NIC, // the other modes count receives themselves
	})
	if err != nil {
		return
	}
	c.cfg, c.core = *cfg, protocol.New(*cfg)
	return c, nil
}

// registerRegion allocates the next region of a connection.
func (c *Conn) registerRegion(n int, access verbs.AccessFlags) (protocol.Memory, error) {
	r, err := c.stack.newRegion(n, access)
	if err != nil {
		return protocol.Memory{}, err
	}
	c.regions = append(c.regions, r)
	return r.protocolMemory(), nil
}

// postInitialReceives posts the first receives. It is the Prepare function of package cm.
func (c *Conn) postInitialReceives(verbs.QP) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.qp.PostRecv(c.core.Receives())
	c.core.ClearPosted()
	return err
}

// startCore starts the data transfer with the negotiated parameters.
func (c *Conn) startCore(p protocol.Peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flowControl = p.FlowControl
	c.core.Start(p)
	c.postPending()
	c.applyKeepAlive()
	c.cmConn.AfterDone(c.handleDisconnected)
	c.exitCall()
}

// handleDisconnected runs when the peer or its host has ended the connection.
func (c *Conn) handleDisconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tornDown {
		return
	}
	if c.progress.Leading() {
		// Flush errors wake the polling call. Post a receive in case none is posted.
		_, _ = c.qp.PostRecv([]verbs.RecvWR{{}})
		return
	}
	c.progress.Poll() // handle the data that arrived before
	c.core.PeerDisconnected(c.cmConn.Err())
	c.progress.Notify()
	c.teardownIfDone()
}
