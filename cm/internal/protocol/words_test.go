package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWords(t *testing.T) {
	for s := StateREQSent; s <= StateGone; s++ {
		require.NotEmpty(t, s.String())
	}
	require.Equal(t, "GONE", State(200).String())
	for k := EventRequest; k <= EventSIDRReply; k++ {
		require.NotContains(t, k.String(), "event ")
	}
	require.Equal(t, "event 0", EventKind(0).String())
	require.Equal(t, "event 200", EventKind(200).String())
	for d := DropNone; d < NumDrops; d++ {
		require.NotContains(t, d.String(), "drop_")
	}
	require.Equal(t, "drop_200", Drop(200).String())
}
