package cm_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/internal/counters"
	"github.com/softrnic/softrnic/wire/mad"
)

// TestDeviceShowsCounters checks that the counters of an open manager are in its device's snapshot.
func TestDeviceShowsCounters(t *testing.T) {
	a, b := newEnd(t, cm.Options{}), newEnd(t, cm.Options{})
	connect(t, a, b, cm.DialOptions{}, cm.AcceptOptions{})
	layers := a.dev.Inspect().Layers
	require.Len(t, layers, 1)
	require.Equal(t, "cm", layers[0].Name)
	shown, levels := map[string]uint64{}, map[string]bool{}
	for _, c := range layers[0].Counters {
		shown[c.Name] = c.Value
		if c.Level {
			levels[c.Name] = true
		}
	}
	require.Equal(t, maps.Collect(a.m.Stats().All()), shown)
	require.EqualValues(t, 1, shown["connected"])
	require.Equal(t, map[string]bool{"connections": true, "half_open": true, "timewait": true, "sidr": true}, levels)
	require.NoError(t, a.m.Close())
	require.Empty(t, a.dev.Inspect().Layers)
}

// TestStatsFollowProtocol checks that Stats has the message types and reasons of the protocol, in
// their order.
func TestStatsFollowProtocol(t *testing.T) {
	attr, malformed, dropped := mad.AttrREQ, mad.DropBadSize, protocol.DropMalformed
	for name := range counters.All(cm.Messages{}) {
		require.Equal(t, strings.ToLower(attr.String()), name)
		attr++
	}
	for name := range counters.All(cm.Malformed{}) {
		require.Equal(t, malformed.String(), name)
		malformed++
	}
	for name := range counters.All(cm.Dropped{}) {
		require.Equal(t, dropped.String(), name)
		dropped++
	}
}
