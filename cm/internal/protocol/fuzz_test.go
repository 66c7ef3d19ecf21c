package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire/mad"
)

// FuzzMachine executes a script on a machine: calls of the program, time, and datagrams that are
// random except for known ids and transactions. Tables stay consistent and bounded, every event
// belongs to an existing object, and in the end none remains.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0x10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{0, 0x13, 1, 0, 0, 0x14, 2, 0, 0, 0x15, 1, 1})
	f.Add([]byte{0x10, 0, 0, 0, 3, 0, 0x14, 0, 0, 0, 5, 0, 0x15, 0, 0, 0})
	f.Add([]byte{0, 0, 0x13, 0, 0, 0, 4, 0, 5, 0, 0x16, 0, 0, 0, 7, 200})
	f.Add([]byte{0x17, 0, 0, 0, 6, 0, 8, 0, 0x18, 0, 0, 0, 7, 255})
	f.Fuzz(func(t *testing.T, script []byte) {
		r := newRig(t, Config{MaxConns: 20, MaxTimewait: 4})
		require.True(t, r.m.Listen(datagrams, ServiceOptions{Backlog: 3}))
		z := fuzzer{rig: r, script: script, tids: []uint64{reqTID}, ids: []uint32{0, 77}}
		for len(z.script) > 0 {
			z.step()
			r.m.check(t)
			require.LessOrEqual(t, len(r.m.entries), 20)
		}
		r.advance(10 * 3600 * sec)
		z.handleOutput()
		for id, e := range r.m.entries { // connections that were not closed
			require.Equal(t, StateEstablished, e.state)
			r.m.Abandon(r.now, id)
		}
		r.advance(3600 * sec)
		z.handleOutput()
		r.m.empty(t)
	})
}

// fuzzer reads a script.
type fuzzer struct {
	*rig
	script []byte
	tids   []uint64 // seen before
	ids    []uint32
}

// next returns the next byte of the script, 0 after its end.
func (z *fuzzer) next() byte {
	if len(z.script) == 0 {
		return 0
	}
	b := z.script[0]
	z.script = z.script[1:]
	return b
}

func (z *fuzzer) id() uint32  { return z.ids[int(z.next())%len(z.ids)] }
func (z *fuzzer) tid() uint64 { return z.tids[int(z.next())%len(z.tids)] }

// step executes one step.
func (z *fuzzer) step() {
	m := z.m
	switch op := z.next(); {
	case op >= 0x10 && op <= 0x1a:
		z.datagram(mad.Attr(op))
	case op == 0:
		if id, ok := m.Connect(z.now, z.peer, mad.REQ{QPN: 600, RemoteResponseTimeout: 17, MaxCMRetries: z.next()}); ok {
			z.ids = append(z.ids, id)
		}
	case op == 1:
		m.RequestSIDR(z.now, z.peer, mad.SIDRReq{ServiceID: datagrams}, z.next(), z.next())
	case op == 2:
		m.Notify(z.id())
	case op == 3:
		m.Accept(z.now, z.id(), mad.REP{QPN: 600})
	case op == 4:
		m.Ready(z.id(), nil)
	case op == 5:
		m.Disconnect(z.now, z.id(), nil)
	case op == 6:
		m.ReplySIDR(z.id(), mad.SIDRRep{})
	case op == 7:
		z.advance(Time(z.next()) * sec / 16)
	case op == 8:
		m.Reject(z.now, z.id(), mad.REJ{Reason: 28})
	case op == 9:
		m.Abandon(z.now, z.id())
	case op == 10:
		m.Unlisten(z.now, served, nil)
	case op == 11:
		m.Listen(served, ServiceOptions{RC: true, UC: true, Backlog: int(z.next())})
	}
	z.handleOutput()
}

// datagram delivers a message with some valid and some invalid fields.
func (z *fuzzer) datagram(attr mad.Attr) {
	var b [mad.Size]byte
	req := z.req()
	req.LocalID = z.id()
	req.QPN = uint32(z.next()) + 1
	local, remote := z.id(), z.id()
	for a, body := range map[mad.Attr]mad.Message{
		mad.AttrREQ: req, mad.AttrREP: &mad.REP{LocalID: local, RemoteID: remote, QPN: 500 + local%2},
		mad.AttrRTU: &mad.RTU{LocalID: local, RemoteID: remote}, mad.AttrREJ: &mad.REJ{LocalID: local, RemoteID: remote},
		mad.AttrMRA:  &mad.MRA{LocalID: local, RemoteID: remote, Message: mad.MessageKind(local & 1), ServiceTimeout: 31},
		mad.AttrDREQ: &mad.DREQ{LocalID: local, RemoteID: remote, RemoteQPN: 600}, mad.AttrDREP: &mad.DREP{LocalID: local, RemoteID: remote},
		mad.AttrSIDRReq: &mad.SIDRReq{RequestID: local, ServiceID: datagrams, PrivateData: req.PrivateData},
		mad.AttrSIDRRep: &mad.SIDRRep{RequestID: remote}, mad.AttrLAP: &mad.LAP{LocalID: local, RemoteID: remote},
		mad.AttrAPR: &mad.APR{LocalID: local, RemoteID: remote},
	} {
		if a == attr {
			mad.Put(&b, mad.Header{TID: z.tid(), Attr: attr}, body)
		}
	}
	for n := z.next() % 4; n > 0; n-- { // corruption
		b[z.next()] ^= z.next()
	}
	z.m.Handle(z.now, z.peer.Addr(), b[:])
}

// handleOutput handles the output of the machine, and records its ids and transactions.
func (z *fuzzer) handleOutput() {
	for e, ok := z.m.NextEvent(); ok; e, ok = z.m.NextEvent() {
		z.ids = append(z.ids, e.ID)
	}
	for d, ok := z.m.NextDatagram(); ok; d, ok = z.m.NextDatagram() {
		h, _, drop := mad.Parse(d.MAD[:])
		require.Equal(z.t, mad.DropNone, drop)
		z.tids = append(z.tids, h.TID)
	}
}
