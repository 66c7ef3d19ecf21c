package acp_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/acp"
	"github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/mpi/pmi"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestUnusable calls every exported function and method with null and freed handles and with arguments out of
// range. All must return, with an error if they return errors.
func TestUnusable(t *testing.T) {
	start := func() *acp.Process {
		p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, acp.Options{Manager: pmi.NewLocal(1)[0]})
		require.NoError(t, err)
		return p
	}
	p, closed := start(), start()
	require.NoError(t, closed.Close())
	channel := func() *acp.Channel {
		ch, err := p.NewChannel(0, 0, acp.ChannelOptions{SlotSize: 64})
		require.NoError(t, err)
		return ch
	}
	region := func() *acp.Region {
		r, err := p.Register(make([]byte, 64))
		require.NoError(t, err)
		return r
	}
	freedEnd := func() *acp.Channel {
		ch := channel()
		ch.Free()
		return ch
	}
	s := &misuse.Surface{
		Dir: ".",
		Funcs: map[string]any{"NewChan": acp.NewChan[int64], "CompareSwap": acp.CompareSwap[uint64], "Swap": acp.Swap[uint32], "FetchAdd": acp.FetchAdd[uint64],
			"FetchXor": acp.FetchXor[uint32], "FetchOr": acp.FetchOr[uint64], "FetchAnd": acp.FetchAnd[uint32]},
		Types: map[string][]misuse.Receiver{
			"Chan": {{Name: "live", Make: func() any {
				c, err := acp.NewChan[int64](p, 0, 0, acp.ChannelOptions{SlotSize: 64})
				require.NoError(t, err)
				return c
			}, Usable: true}},
			"Channel": {{Name: "live", Make: func() any { return channel() }, Usable: true}, {Name: "freed", Make: func() any { return freedEnd() }}},
			"Error":   {{Name: "live", Make: func() any { return &acp.Error{} }, Usable: true}},
			"GA":      {{Name: "live", Make: func() any { return region().GA(0) }, Usable: true}, {Name: "null", Make: func() any { return acp.Null }, Usable: true}},
			"Group":   {{Name: "live", Make: func() any { return p.NewGroup() }, Usable: true}},
			"Process": {{Name: "live", Make: func() any { return p }, Usable: true}, {Name: "closed", Make: func() any { return closed }}},
			"Region": {
				{Name: "live", Make: func() any { return region() }, Usable: true},
				{Name: "closed", Make: func() any { r := region(); _ = r.Close(); return r }},
			},
			"Request": {{Name: "refused", Make: func() any { return freedEnd().Send(nil) }}},
			"Stats":   {{Name: "live", Make: func() any { return p.Stats() }, Usable: true}},
		},
		Values: []any{acp.GA(0), ^acp.GA(0), acp.ChannelOptions{SlotSize: -8}, acp.ChannelOptions{Slots: math.MaxInt/2 + 1}},
		Except: map[string]string{
			"Chan.RecvSlice on live":   "waits for a message, also into an empty slice",
			"Process.LoadStarter":      "panics as an index of a slice does",
			"Region.LoadUint32":        "panics as an index of a slice does",
			"Region.LoadUint64":        "panics as an index of a slice does",
			"Init":                     "joins the job of the process",
			"Process.Close on live":    "ends the process of this test",
			"Process.Finalize on live": "ends the process of this test",
			"Process.Abort on live":    "ends the job of this test",
			"Process.Abort on closed":  "ends the job of this test",
		},
		Errors: []error{acp.ErrNull, acp.ErrClosed, acp.ErrFreed, acp.ErrRegion},
		Quiet: map[string]string{
			"Process.Close on closed":    "may be called again",
			"Region.Close on closed":     "may be called again",
			"Process.Complete on closed": "None is always complete",
		},
	}
	s.Check(t)
	require.NoError(t, p.Close())
}

// TestFabricHostIgnoresInvalid has a fabric report ranks outside the job and a nil peer.
func TestFabricHostIgnoresInvalid(t *testing.T) {
	p, err := acp.Init(func() (verbs.Device, error) { return rnic.Open(rnic.Options{}) }, acp.Options{Manager: pmi.NewLocal(1)[0]})
	require.NoError(t, err)
	h := p.FabricHost()
	h.DoLocked(func() {
		for _, rank := range []int{-1, 1, math.MaxInt, math.MinInt} {
			h.PeerFound(rank, nil)
			h.PeerLost(rank, acp.ErrLost)
			h.HandleSignal(rank, math.MaxUint32)
		}
		h.PeerFound(0, nil)
		h.HandleSignal(0, math.MaxUint32)
	})
	require.NoError(t, p.Close())
}
