package protocol

import "github.com/softrnic/softrnic/verbs"

// SendKeepAlive asks the peer's adapter whether it is there, by an RDMA WRITE of
// nothing. No message of SDP is sent, and the peer's software does not notice;
// if there is no answer the queue pair fails. It is false if one is under way
// already.
func (c *Core) SendKeepAlive() bool {
	if c.probing || c.err != nil || !c.started {
		return false
	}
	c.sendProbe(0)
	return true
}

// probeAfterLast is the value of the question behind the last byte: see pumpLast.
const probeAfterLast = 1

func (c *Core) sendProbe(value uint64) {
	c.probing = true
	c.out = append(c.out, verbs.SendWR{
		WRID: kindAlive.wrid(value), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		RemoteAddr: c.peer.Addr, RKey: c.peer.RKey,
	})
}
