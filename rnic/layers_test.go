package rnic

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLayers checks that a layer is in the snapshot of its device until it is removed.
func TestLayers(t *testing.T) {
	e := newEnd(t, Options{})
	require.Empty(t, e.dev.Inspect().Layers)
	text, err := json.Marshal(e.dev.Inspect())
	require.NoError(t, err)
	require.NotContains(t, string(text), "layers")

	n := uint64(0)
	counters := func(yield func(string, uint64) bool) {
		n++
		_ = yield("asked", n) && yield("open", 7)
	}
	remove := e.dev.AddLayer("cm", counters, "open")
	again := e.dev.AddLayer("cm", counters, "open")
	s := e.dev.Inspect()
	require.Equal(t, []LayerInfo{
		{"cm", []LayerCounter{{"asked", 1, false}, {"open", 7, true}}},
		{"cm", []LayerCounter{{"asked", 2, false}, {"open", 7, true}}},
	}, s.Layers)
	text, err = json.Marshal(s.Layers[:1])
	require.NoError(t, err)
	require.JSONEq(t, `[{"name":"cm","counters":[{"name":"asked","value":1},{"name":"open","value":7,"level":true}]}]`, string(text))
	remove()
	remove()
	require.Len(t, e.dev.Inspect().Layers, 1)
	again()
	require.Empty(t, e.dev.Inspect().Layers)
}
