package collective

import (
	"github.com/softrnic/softrnic/mpi/internal/coll"
	"github.com/softrnic/softrnic/mpi/internal/protocol"
)

var (
	_ coll.TransportNet    = (*callNet)(nil)
	_ coll.RDMANet         = (*callNet)(nil)
	_ coll.SharedQueueNet  = (*callNet)(nil)
	_ coll.SharedMemoryNet = (*callNet)(nil)
)

// Transports implements coll.TransportNet.
func (n *callNet) Transports() coll.Transports { return n.comm.job.Transports }

// CanWrite implements coll.RDMANet.
func (n *callNet) CanWrite() bool {
	if n.channel == nil {
		n.channel = n.openChannel()
	}
	return n.channel != nil
}

// RegisterTarget implements coll.RDMANet.
func (n *callNet) RegisterTarget(b []byte) (a coll.Address, known bool, err error) {
	if _, err = n.comm.Engine.Lock(); err != nil {
		return a, false, err
	}
	defer n.comm.Engine.Unlock()
	known, err = n.channel.exposeBuffer(b)
	return n.channel.address, known, err
}

// RegisterSource implements coll.RDMANet.
func (n *callNet) RegisterSource(b []byte) (err error) {
	if _, err = n.comm.Engine.Lock(); err != nil {
		return err
	}
	defer n.comm.Engine.Unlock()
	_, _, err = n.channel.sendRegistration.register(n.comm.Comm, b)
	return err
}

// SetRemoteAddress implements coll.RDMANet.
func (n *callNet) SetRemoteAddress(rank int, a coll.Address) error {
	return n.channel.setRemote(rank, a)
}

// Write implements coll.RDMANet.
func (n *callNet) Write(to, off int, b []byte) coll.Request {
	m := n.newMessage()
	key, err := n.channel.remoteKey(to, off)
	if err != nil {
		m.err = err
		return m
	}
	core, err := n.comm.Engine.Lock()
	if err != nil {
		m.err = err
		return m
	}
	m.p.Dest, m.p.Buf = n.comm.WorldRank(to), b
	core.PutNotify(&m.p, key, uint32(key.ID))
	n.comm.Engine.Unlock()
	return m
}

// WriteArrived implements coll.RDMANet.
func (n *callNet) WriteArrived(from int) coll.Request {
	m := n.newMessage()
	m.writer = from + 1
	return m
}

// openChannel locks the RDMA channel of a call and returns it, nil if ranks cannot write to
// each other's memory.
func (n *callNet) openChannel() *rdmaChannel {
	c := n.comm
	if _, ok := c.Engine.Fabric().(protocol.Notifier); !ok || !n.op.isAlltoall() {
		return nil
	}
	var l *rdmaChannel
	switch n.op.form {
	case blocking:
		l = c.channels.getOrCreate(&c.channels.blocking, c.Comm, &c.job.channels)
	case persistent:
		if n.persistentChannel == nil {
			n.persistentChannel = c.job.channels.newChannel(c.Comm)
		}
		l = n.persistentChannel
	default:
		l = c.job.channels.newChannel(c.Comm)
		l.oneCall = true
	}
	l.callMu.Lock()
	return l
}

// closeChannel unlocks the channel at the end of a call. The channel of a failed nonblocking
// call stays open, because ranks that do not know of the failure may still write to its memory.
func (n *callNet) closeChannel(err error) {
	l := n.channel
	if l == nil {
		return
	}
	n.channel = nil
	if err != nil {
		n.comm.Engine.Do(func(*protocol.Core) { l.markBroken(err) })
	}
	l.callMu.Unlock()
	if l.oneCall && err == nil {
		n.comm.job.channels.closeChannel(l)
	}
}
