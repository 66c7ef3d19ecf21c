package rdm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/verbs"
)

// TestUnusable calls every exported function and method with nil arguments and numbers
// out of range, of live and of closed endpoints.
func TestUnusable(t *testing.T) {
	e, far := endpoint(t, "", rdm.Options{}), endpoint(t, "", rdm.Options{})
	peer := dial(t, e, far)
	closed, err := rdm.Open(device(t, ""), rdm.Options{})
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	region := func() *rdm.Region {
		r, err := e.Register(make([]byte, 64), verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		return r
	}
	live := func(v any) []misuse.Receiver {
		return []misuse.Receiver{{Name: "live", Make: func() any { return v }, Usable: true}}
	}
	s := &misuse.Surface{
		Dir:    ".",
		NoNull: "handles come of Open, Dial, Recv and Register alone",
		Funcs:  map[string]any{"ParseAddr": rdm.ParseAddr, "Resolve": rdm.Resolve, "Open": rdm.Open},
		Types: map[string][]misuse.Receiver{
			"Addr":      {{Name: "live", Make: func() any { a := e.Addr(); return &a }, Usable: true}, {Name: "zero", Make: func() any { return &rdm.Addr{} }, Usable: true}},
			"Endpoint":  {{Name: "live", Make: func() any { return e }, Usable: true}, {Name: "closed", Make: func() any { return closed }}},
			"Op":        {{Name: "zero", Make: func() any { return &rdm.Op{} }, Usable: true}},
			"OpError":   live(&rdm.OpError{}),
			"Peer":      live(peer),
			"PeerError": live(&rdm.PeerError{}),
			"Region":    {{Name: "live", Make: func() any { return region() }, Usable: true}},
			"Remote":    live(rdm.Remote{}),
			"Stats":     live(rdm.Stats{}),
			"Service":   {{Name: "unknown", Make: func() any { return rdm.Service(200) }, Usable: true}},
		},
		Except: map[string]string{
			"Endpoint.Recv on live":  "waits for a message, also into an empty slice",
			"Region.LoadUint64":      "panics as an index of a slice does",
			"Endpoint.Close on live": "ends the endpoint of this test",
			"Peer.Close on live":     "ends the peer of this test",
		},
		Quiet: map[string]string{"Endpoint.Close on closed": "may be called again"},
	}
	s.Check(t)
}

// TestOptions checks that options out of range are refused with field, value and range.
func TestOptions(t *testing.T) {
	dev := device(t, "")
	for text, o := range map[string]rdm.Options{
		"Options.Receives: -1 out of range [0, 1048576]":     {Receives: -1},
		"Options.Packets: 1048577 out of range [0, 1048576]": {Packets: 1<<20 + 1},
		"Options.Backlog: -1 out of range [0, 1073741824]":   {Backlog: -1},
		"Options.Peers: 16777217 out of range [0, 16777216]": {Peers: 1<<24 + 1},
		"Options.Ops: 32769 out of range [0, 32768]":         {Ops: 1<<15 + 1},
		"Options.GiveUp: -1s, want at least 100ms":           {GiveUp: -time.Second},
		"Options.GiveUp: 1ns, want at least 100ms":           {GiveUp: 1},
		"Options.Service: 9 out of range [0, 2]":             {Service: 9},
	} {
		_, err := rdm.Open(dev, o)
		require.ErrorContains(t, err, text)
		require.ErrorIs(t, err, verbs.ErrInvalid)
	}
}
