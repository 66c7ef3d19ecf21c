package datagram

import "github.com/softrnic/softrnic/verbs"

// GRHLen is what comes before the payload in a receive of a datagram, in bytes.
const GRHLen = 40

// buffers are what datagrams arrive in.
type buffers struct {
	mr   verbs.MR
	sges []verbs.SGE
	size int // of each
}

func (b *buffers) init(pd verbs.PD, n, mtu int) (err error) {
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

func (b *buffers) wr(i int) verbs.RecvWR {
	return verbs.RecvWR{WRID: wrid(wrRecv, i, 0), SGList: b.sges[i : i+1]}
}

// Look handles completions of CQ.
func (p *Port) Look(wcs []verbs.WC) {
	now := p.Now()
	for i := range wcs {
		wc := &wcs[i]
		kind, index, ordinal := unpack(wc.WRID)
		switch {
		case kind == 0:
			if p.o.Others != nil {
				p.o.Others(wc)
			}
			continue
		case kind != wrRecv:
			if int32(ordinal+1-p.completed) > 0 { // two that look may get them in another order
				p.completed = ordinal + 1
			}
			if kind == wrSlot {
				p.Core.Done(index)
			}
			if wc.Status != verbs.WCSuccess && !isRefused(wc) {
				p.fail(wc.Err())
			}
			continue
		case wc.Status == verbs.WCSuccess && wc.ByteLen >= GRHLen:
			b := p.recvs.mr.Bytes()[index*p.recvs.size:]
			p.o.Arrived(now, wc, b[:GRHLen], b[GRHLen:wc.ByteLen])
		}
		p.repost = append(p.repost, p.recvs.wr(index))
	}
	if len(p.repost) > 0 {
		if _, err := p.QP.PostRecv(p.repost); err != nil {
			p.fail(err)
		}
		p.repost = p.repost[:0]
	}
}
