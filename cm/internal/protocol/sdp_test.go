package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/wire/mad"
)

// reqToSDP returns a valid REQ of the peer to SDP, and its Hello.
func (r *rig) reqToSDP(port uint16) (*mad.REQ, *bsdh.Hello) {
	h := &bsdh.Hello{Version: bsdh.Version, MaxAdverts: 1, LocalPort: 50123, Src: r.peer.Addr(), Dst: r.self}
	q := r.req()
	q.ServiceID, q.PrivateData = mad.ServiceID(bsdh.ServiceID(port)), h.Append(nil)
	return q, h
}

// TestRequestToSDP checks that the program gets the whole private data of a request to SDP, and the
// peer's address from the Hello.
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

// TestRequestToSDPWithoutHello checks that a request to SDP without a Hello, or with one of another
// peer, is rejected.
func TestRequestToSDPWithoutHello(t *testing.T) {
	for name, spoil := range map[string]func(q *mad.REQ, h *bsdh.Hello){
		"empty":             func(q *mad.REQ, _ *bsdh.Hello) { q.PrivateData = nil },
		"another":           func(q *mad.REQ, _ *bsdh.Hello) { q.PrivateData[0] = byte(bsdh.MIDHelloAck) },
		"IP version":        func(q *mad.REQ, _ *bsdh.Hello) { q.PrivateData[17] = 0x50 },
		"RDMA-CM's":         func(q *mad.REQ, h *bsdh.Hello) { mad.CMAHeader{Dst: h.Dst}.Put(q.PrivateData) },
		"of another sender": func(q *mad.REQ, h *bsdh.Hello) { h.Src = stranger.Addr(); q.PrivateData = h.Append(nil) },
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
