package protocol

import "github.com/softrnic/softrnic/verbs"

// SendKeepAlive probes the peer's adapter by an RDMA WRITE of no bytes. It sends no SDP message
// and does not involve the peer's software. Without an acknowledgement the queue pair fails. It
// returns false if a probe is outstanding.
func (c *Core) SendKeepAlive() bool {
	if c.probing || c.err != nil || !c.started {
		return false
	}
	c.sendProbe(0)
	return true
}

// probeAfterLast is the value of the probe after the last byte; see requestFinalAck.
const probeAfterLast = 1

func (c *Core) sendProbe(value uint64) {
	c.probing = true
	c.out = append(c.out, verbs.SendWR{
		WRID: kindAlive.wrid(value), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		RemoteAddr: c.peer.Addr, RKey: c.peer.RKey,
	})
}
