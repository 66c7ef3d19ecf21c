package pingpong

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// busyCQ returns a completion at each poll.
type busyCQ struct{ verbs.CQ }

func (busyCQ) Poll([]verbs.WC) (int, error) { return 1, nil }

// TestWaitEndsOnFastPath cancels the context of a test that never waits for a completion.
func TestWaitEndsOnFastPath(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := &endpoint{Options: &Options{}, cq: busyCQ{}}
	for calls := 1; ; calls++ {
		if _, err := e.pollCompletions(ctx, make([]verbs.WC, 1)); err != nil {
			require.ErrorIs(t, err, context.Canceled)
			return
		}
		require.LessOrEqual(t, calls, contextCheckPolls)
	}
}

// TestCheck checks that the first wrong byte is reported.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		at   int // of the wrong byte
		want *DataError
	}{
		{RC, -1, nil},
		{RC, 0, &DataError{Page: 0, Offset: 0, Got: 0x55, Want: 0}},
		{RC, 4096, &DataError{Page: 1, Offset: 4096, Got: 0x55, Want: 0}},
		{UD, 4097, &DataError{Page: 1, Offset: 4097, Got: 0x55, Want: fillByte}},
		{SRQ, 7, &DataError{Page: 0, Offset: 7, Got: 0x55, Want: 0}},
	} {
		e := &endpoint{Options: &Options{Kind: c.kind, Check: true}}
		message := make([]byte, 5000)
		if c.kind != SRQ {
			message = bytes.Repeat([]byte{fillByte}, len(message))
			message[0], message[page] = 0, 0
		}
		if c.want == nil {
			require.NoError(t, e.checkMessage(message))
			continue
		}
		message[c.at] = 0x55
		var wrong *DataError
		require.ErrorAs(t, e.checkMessage(message), &wrong)
		require.Equal(t, c.want, wrong)
	}
}
