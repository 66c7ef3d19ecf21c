package datagram

import "github.com/softrnic/softrnic/verbs"

// GRHLen is the number of bytes before the payload in the receive of a
// datagram.
const GRHLen = 40

// slabReceives is the number of receive buffers that are registered together.
const slabReceives = 8

// recvBuffers are the receive buffers of a Port, in slabs.
type recvBuffers struct {
	slabs []verbs.MR
	sges  []verbs.SGE
	size  int // of each buffer
}

// buffer returns receive buffer i.
func (b *recvBuffers) buffer(i int) []byte {
	return b.slabs[i/slabReceives].Bytes()[i%slabReceives*b.size:][:b.size]
}

func (b *recvBuffers) recvWR(i int) verbs.RecvWR {
	return verbs.RecvWR{WRID: makeWRID(wrRecv, i, 0), SGList: b.sges[i : i+1]}
}

// addReceives adds receive buffers until there are n, posts them, and arms the limit event
// unless there are Options.Receives.
func (p *Port) addReceives(n int) error {
	b := &p.recvs
	for n = min(n, p.opts.Receives); len(b.sges) < n; {
		first, count := len(b.sges), min(slabReceives, n-len(b.sges))
		mr, err := p.PD.RegMR(make([]byte, count*b.size), verbs.AccessLocalWrite)
		if err != nil {
			return err
		}
		b.slabs = append(b.slabs, mr)
		wrs := make([]verbs.RecvWR, count)
		for i := range wrs {
			b.sges = append(b.sges, mr.SGE(i*b.size, b.size))
		}
		for i := range wrs {
			wrs[i] = b.recvWR(first + i)
		}
		if _, err := p.srq.PostRecv(wrs); err != nil {
			return err
		}
	}
	if n == p.opts.Receives {
		return nil
	}
	return p.srq.Modify(verbs.SRQAttr{Limit: n / 4}, verbs.SRQLimit)
}

// GrowReceives doubles the number of receive buffers, up to Options.Receives. It is called
// when the device raises EventSRQLimitReached for a queue of which OwnsSRQ reports true.
func (p *Port) GrowReceives() {
	if err := p.addReceives(2 * len(p.recvs.sges)); err != nil {
		p.reportFailure(err)
	}
}

// ReceiveCount returns the number of receive buffers.
func (p *Port) ReceiveCount() int { return len(p.recvs.sges) }

// OwnsSRQ reports whether q is the receive queue of the port.
func (p *Port) OwnsSRQ(q verbs.SRQ) bool { return q == p.srq }

// HandleCompletions handles completions of CQ.
func (p *Port) HandleCompletions(wcs []verbs.WC) {
	now := p.Now()
	for i := range wcs {
		wc := &wcs[i]
		kind, index, ordinal := splitWRID(wc.WRID)
		switch {
		case kind == 0:
			if p.opts.OnCompletion != nil {
				p.opts.OnCompletion(wc)
			}
			continue
		case kind != wrRecv:
			if int32(ordinal+1-p.completed) > 0 { // concurrent pollers may handle them in another order
				p.completed = ordinal + 1
			}
			if kind == wrSlot {
				p.Core.ReleaseSlot(index)
			}
			if wc.Status != verbs.WCSuccess && !isRefused(wc) {
				p.reportFailure(wc.Err())
			}
			continue
		case wc.Status == verbs.WCSuccess && wc.ByteLen >= GRHLen:
			b := p.recvs.buffer(index)
			p.opts.OnDatagram(now, wc, b[:GRHLen], b[GRHLen:wc.ByteLen])
		}
		p.repost = append(p.repost, p.recvs.recvWR(index))
	}
	if len(p.repost) > 0 {
		if _, err := p.srq.PostRecv(p.repost); err != nil {
			p.reportFailure(err)
		}
		p.repost = p.repost[:0]
	}
}
