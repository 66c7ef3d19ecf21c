package datagram

import "github.com/softrnic/softrnic/verbs"

// GRHLen is the number of bytes before the payload in the receive of a
// datagram.
const GRHLen = 40

// recvBuffers are the receive buffers of a Port.
type recvBuffers struct {
	mr   verbs.MR
	sges []verbs.SGE
	size int // of each buffer
}

func (b *recvBuffers) init(pd verbs.PD, n, mtu int) (err error) {
	b.size = (GRHLen + mtu + 63) &^ 63
	if b.mr, err = pd.RegMR(make([]byte, n*b.size), verbs.AccessLocalWrite); err != nil {
		return err
	}
	b.sges = make([]verbs.SGE, n)
	for i := range b.sges {
		b.sges[i] = b.mr.SGE(i*b.size, b.size)
	}
	return nil
}

func (b *recvBuffers) recvWR(i int) verbs.RecvWR {
	return verbs.RecvWR{WRID: makeWRID(wrRecv, i, 0), SGList: b.sges[i : i+1]}
}

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
			b := p.recvs.mr.Bytes()[index*p.recvs.size:]
			p.opts.OnDatagram(now, wc, b[:GRHLen], b[GRHLen:wc.ByteLen])
		}
		p.repost = append(p.repost, p.recvs.recvWR(index))
	}
	if len(p.repost) > 0 {
		if _, err := p.QP.PostRecv(p.repost); err != nil {
			p.reportFailure(err)
		}
		p.repost = p.repost[:0]
	}
}
