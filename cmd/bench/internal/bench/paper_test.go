package bench

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFromSource checks the selection of experiments by the sources that a reader types.
func TestFromSource(t *testing.T) {
	var g Registry
	for name, source := range map[string]string{
		"memory": "RCUD fig. 6a", "sdp-latency": "SDP fig. 6a", "read": "RCUD fig. 10", "write": "RCUD fig. 11", "even": "RCUD fig. 8",
		"connect": "ACP figs. 11, 12", "tables": "ACP tables I, II, III", "get": "IWARP fig. 6", "copy": "SDP sec. 2.2", "own": Adapter,
	} {
		g.Register(&Experiment{
			Name: name, Source: source, Claim: "It is.", Axes: []Axis{{"x", "B"}},
			Run: func(context.Context, *Run) (Verdict, error) { return Verdict{}, nil },
		})
	}
	for pattern, want := range map[string]string{
		"fig. 6a": "memory sdp-latency", "Figure 6A": "memory sdp-latency", "fig 6a": "memory sdp-latency", "fig.6a": "memory sdp-latency",
		"RCUD fig. 6a": "memory", "rcud 6a": "", "rcud": "even memory read write", "RCUD": "even memory read write",
		"fig. 6": "get memory sdp-latency", "fig. 1": "", "fig. 11": "connect write", "ACP fig. 12": "connect", "acp table II": "tables",
		"SDP": "copy sdp-latency", "connection-less transport": "even memory read write", "IWARP": "get", "sec. 2.2": "copy", "": "", "nothing": "",
	} {
		found, err := g.Find(pattern)
		if want == "" {
			require.ErrorContains(t, err, "unknown experiment", pattern)
			continue
		}
		require.NoError(t, err, pattern)
		var names []string
		for _, e := range found {
			names = append(names, e.Name)
		}
		require.Equal(t, want, strings.Join(names, " "), pattern)
		if pattern != "SDP" {
			matched, err := g.Match(pattern)
			require.NoError(t, err)
			require.Equal(t, found, matched, pattern)
		}
	}
	matched, err := g.Match("sdp")
	require.NoError(t, err)
	require.Len(t, matched, 1, "names come before sources")
	_, err = g.Find("read", "rcud")
	require.NoError(t, err)
}
