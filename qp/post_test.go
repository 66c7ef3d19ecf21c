package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestPostSendRefusals checks the requests that PostSend refuses and their errors, and that none is
// queued.
func TestPostSendRefusals(t *testing.T) {
	for what, c := range map[string]struct {
		typ  verbs.QPType
		wr   func(p *pair) verbs.SendWR
		want error
	}{
		"too many elements": {verbs.RC, func(p *pair) verbs.SendWR {
			wr := p.write(1, 0, 0, 8)
			wr.SGList = make([]verbs.SGE, 5)
			return wr
		}, verbs.ErrLimit},
		"too much inline data": {verbs.RC, func(p *pair) verbs.SendWR {
			return verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: make([]byte, 65)}
		}, verbs.ErrLimit},
		"inline data in a list": {verbs.RC, func(p *pair) verbs.SendWR { return withFlags(p.send(1, 0, 8), verbs.SendInline) }, verbs.ErrInvalid},
		"inline read":           {verbs.RC, func(p *pair) verbs.SendWR { return withFlags(p.read(1, 0, 0, 8), verbs.SendInline) }, verbs.ErrInvalid},
		"inline atomic":         {verbs.RC, func(p *pair) verbs.SendWR { return withFlags(p.fetchAdd(1, 0, 0, 8), verbs.SendInline) }, verbs.ErrInvalid},
		"more than 2^31 bytes": {verbs.RC, func(p *pair) verbs.SendWR {
			wr := p.write(1, 0, 0, 0)
			wr.SGList = []verbs.SGE{{Length: 1 << 31}, {Length: 1}}
			return wr
		}, verbs.ErrLimit},
		"atomic of 4 bytes": {verbs.RC, func(p *pair) verbs.SendWR {
			wr := p.fetchAdd(1, 0, 0, 1)
			wr.SGList[0].Length = 4
			return wr
		}, verbs.ErrInvalid},
		"atomic of 16 bytes": {verbs.RC, func(p *pair) verbs.SendWR {
			wr := p.fetchAdd(1, 0, 0, 1)
			wr.SGList[0].Length = 16
			return wr
		}, verbs.ErrInvalid},
		"unknown opcode":    {verbs.RC, func(p *pair) verbs.SendWR { return verbs.SendWR{Opcode: 10} }, verbs.ErrUnsupported},
		"no AH":             {verbs.UD, func(p *pair) verbs.SendWR { wr := p.datagram(1, 8); wr.AH = nil; return wr }, verbs.ErrInvalid},
		"QPN 0":             {verbs.UD, func(p *pair) verbs.SendWR { wr := p.datagram(1, 8); wr.RemoteQPN = 0; return wr }, verbs.ErrInvalid},
		"wide QPN":          {verbs.UD, func(p *pair) verbs.SendWR { wr := p.datagram(1, 8); wr.RemoteQPN = 1 << 24; return wr }, verbs.ErrInvalid},
		"datagram too long": {verbs.UD, func(p *pair) verbs.SendWR { return p.datagram(1, 4097) }, verbs.ErrLimit},
	} {
		t.Run(what, func(t *testing.T) {
			p := connect(t, ofType(c.typ))
			good := p.toPeer(p.send(1, 0, 8))
			n, err := p.a.PostSend(p.now, []verbs.SendWR{good, c.wr(p), good})
			require.ErrorIs(t, err, c.want)
			require.Equal(t, 1, n, "those before it are accepted")
			require.Equal(t, 1, p.a.sq.len())
			require.Len(t, p.drain(p.a), 1)
		})
	}
}

// TestPostListInErr checks that in ERR the requests before an invalid one are accepted, and
// flushed.
func TestPostListInErr(t *testing.T) {
	p := connect(t)
	require.NoError(t, p.modify(p.a, verbs.StateErr))
	n, err := p.a.PostSend(p.now, []verbs.SendWR{p.send(1, 0, 8), {Opcode: 10}})
	require.ErrorIs(t, err, verbs.ErrUnsupported)
	require.Equal(t, 1, n)
	require.Equal(t, []string{"1 WR_FLUSH_ERR"}, p.a.takeCompletions())
}

// TestPostToAGroup checks that a datagram may have a multicast destination.
func TestPostToAGroup(t *testing.T) {
	p := connect(t, ofType(verbs.UD))
	wr := p.datagram(1, 8)
	wr.RemoteQPN = 0xffffff
	p.a.post(p.now, wr)
	require.EqualValues(t, 0xffffff, p.drain(p.a)[0].BTH.DestQPN)
}

func TestPostRecvRefusals(t *testing.T) {
	p := connect(t)
	n, err := p.a.PostRecv([]verbs.RecvWR{{WRID: 1}, {WRID: 2, SGList: make([]verbs.SGE, 5)}})
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.Equal(t, 1, n)
	q := connect(t, withSRQ)
	_, err = q.a.PostRecv([]verbs.RecvWR{{WRID: 1}})
	require.ErrorIs(t, err, verbs.ErrInvalid)
}

// TestQueuesGrowToTheirLimit checks that a full queue is an error and loses no request, also at
// sizes that are not powers of two, and that requests stay in order around the ring and while it
// grows.
func TestQueuesGrowToTheirLimit(t *testing.T) {
	for _, limit := range []int{1, 3, 4, 5, 8, 33, 64} {
		p := connect(t, withConfig(func(c *Config) { c.Cap.MaxSendWR, c.Cap.MaxRecvWR, c.Cap.MaxSendSGE = limit, limit, 2 }))
		next, done := uint64(0), uint64(0)
		for round := range 20 {
			batch := min(1+round*7%limit, limit-p.a.sq.len())
			for range batch {
				off := int(next) % 512
				p.a.buf[off] = byte(next)
				wr := verbs.SendWR{WRID: next, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{p.a.sge(off, 1), p.a.sge(off, 1)}}
				if next%3 == 0 {
					wr.SGList, wr.InlineData, wr.Flags = nil, []byte{byte(next), byte(next)}, wr.Flags|verbs.SendInline
				}
				p.a.post(p.now, wr)
				p.b.recv(next, 1024, 2)
				next++
			}
			if p.a.sq.len() == limit {
				n, err := p.a.PostSend(p.now, make([]verbs.SendWR, 2))
				require.ErrorIs(t, err, verbs.ErrQueueFull)
				require.Zero(t, n)
				n, err = p.b.PostRecv(make([]verbs.RecvWR, 2))
				require.ErrorIs(t, err, verbs.ErrQueueFull)
				require.Zero(t, n)
			}
			for _, pkt := range p.drain(p.a) {
				require.Equal(t, []byte{byte(done), byte(done)}, pkt.Payload)
				p.deliver(p.b, pkt)
				require.Equal(t, done, p.b.wcs[len(p.b.wcs)-1].WRID)
				done++
			}
			p.exchange()
		}
		require.Len(t, p.a.takeCompletions(), int(next))
		require.Equal(t, next, done)
	}
}

// TestListsOfWork checks that requests are executed in the order of one list, and of consecutive
// lists.
func TestListsOfWork(t *testing.T) {
	p := connect(t)
	var wrs []verbs.SendWR
	for i := range uint64(10) {
		wrs = append(wrs, p.write(i, int(i), 0, 1))
		p.a.buf[i] = byte(i)
	}
	p.a.post(p.now, wrs...)
	p.exchange()
	require.EqualValues(t, 9, p.b.buf[0])
	require.Len(t, p.a.takeCompletions(), 10)
}

// TestPostSendAll checks that requests are queued together or not at all.
func TestPostSendAll(t *testing.T) {
	p := connect(t)
	bad := p.write(9, 0, 0, 8)
	bad.SGList = make([]verbs.SGE, 5)
	require.ErrorIs(t, p.a.PostSendAll(p.now, []verbs.SendWR{p.write(1, 0, 0, 8), p.write(2, 0, 0, 8), bad}), verbs.ErrLimit)
	require.Zero(t, p.a.sq.len())
	many := make([]verbs.SendWR, p.a.Cap().MaxSendWR+1)
	for i := range many {
		many[i] = p.write(uint64(i), 0, 0, 8)
	}
	require.ErrorIs(t, p.a.PostSendAll(p.now, many), verbs.ErrQueueFull)
	require.Zero(t, p.a.sq.len())
	require.NoError(t, p.a.PostSendAll(p.now, many[1:]))
	require.Equal(t, len(many)-1, p.a.sq.len())
}
