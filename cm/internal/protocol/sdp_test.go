package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wire/bsdh"
	"github.com/softrnic/softrnic/wire/mad"
)

// reqToSDP is a good REQ of the peer's to SDP, and its Hello.
func (r *rig) reqToSDP(port uint16) (*mad.REQ, *bsdh.Hello) {
	h := &bsdh.Hello{Version: bsdh.Version, MaxAdverts: 1, LocalPort: 50123, Src: r.peer.Addr(), Dst: r.self}
	q := r.req()
	q.ServiceID, q.PrivateData = mad.ServiceID(bsdh.ServiceID(port)), h.Append(nil)
	return q, h
}

// Of a request to SDP the program gets the whole private data, and from the
// Hello who asks.
func TestRequestToSDP(t *testing.T) {
	r := newRig(t, Config{})
	q, h := r.reqToSDP(9)
	require.True(t, r.m.Listen(q.ServiceID, ServiceOptions{RC: true, Backlog: 8}))
	require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrREQ, q))
	e := r.nextEvent(EventRequest)
	require.Equal(t, q.PrivateData, e.Private)
	require.Equal(t, h.Src, e.CMA.Src.Addr())
	require.Equal(t, h.LocalPort, e.CMA.Src.Port())
	require.Equal(t, h.Dst, e.CMA.Dst)
}

// Without a Hello, or with one of somebody else, a request to SDP is refused.
func TestRequestToSDPWithoutHello(t *testing.T) {
	for name, spoil := range map[string]func(q *mad.REQ, h *bsdh.Hello){
		"empty":         func(q *mad.REQ, _ *bsdh.Hello) { q.PrivateData = nil },
		"another":       func(q *mad.REQ, _ *bsdh.Hello) { q.PrivateData[0] = byte(bsdh.MIDHelloAck) },
		"IP version":    func(q *mad.REQ, _ *bsdh.Hello) { q.PrivateData[17] = 0x50 },
		"RDMA-CM's":     func(q *mad.REQ, h *bsdh.Hello) { mad.CMAHeader{Dst: h.Dst}.Put(q.PrivateData) },
		"of a stranger": func(q *mad.REQ, h *bsdh.Hello) { h.Src = stranger.Addr(); q.PrivateData = h.Append(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			q, h := r.reqToSDP(9)
			require.True(t, r.m.Listen(q.ServiceID, ServiceOptions{RC: true, Backlog: 8}))
			spoil(q, h)
			require.Equal(t, DropNone, r.deliver(reqTID, mad.AttrREQ, q))
			_, body := r.nextSent(mad.AttrREJ)
			require.Equal(t, mad.RejUnsupported, body.(*mad.REJ).Reason)
			r.requireSilence()
		})
	}
}
