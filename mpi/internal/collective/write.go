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
		n.channel = n.call.openChannel()
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
	_, _, err = n.channel.sendRegistration.register(n.comm, b)
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
func (k *call) openChannel() *rdmaChannel {
	c := k.comm
	if _, ok := c.Engine.Fabric().(protocol.Notifier); !ok || !k.op.isAlltoall() {
		return nil
	}
	var l *rdmaChannel
	switch k.op.form {
	case blocking:
		l = c.channels.getOrCreate(&c.channels.blocking, c)
	case persistent:
		if k.persistentChannel == nil {
			k.persistentChannel = c.job.channels.newChannel(c)
		}
		l = k.persistentChannel
	default:
		l = c.job.channels.newChannel(c)
		l.oneCall = true
	}
	l.callMu.Lock()
	return l
}

// isAlltoall reports whether the call is an alltoall over all ranks, the only one that uses
// RDMA channels.
func (o *Op) isAlltoall() bool { return o.collective == coll.Alltoall && o.grid == nil }

// closeChannel unlocks the channel at the end of a call. The channel of a failed nonblocking
// call stays open, because ranks that do not know of the failure may still write to its memory.
func (k *call) closeChannel(err error) {
	l := k.net.channel
	if l == nil {
		return
	}
	k.net.channel = nil
	if err != nil {
		k.comm.Engine.Do(func(*protocol.Core) { l.markBroken(err) })
	}
	l.callMu.Unlock()
	if l.oneCall && err == nil {
		k.comm.job.channels.closeChannel(l)
	}
}
