package verbs_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

func TestOpErrorText(t *testing.T) {
	e := &verbs.OpError{Op: "post send", Object: "QP 0x11", Detail: "it is in RTR", Err: verbs.ErrState}
	require.EqualError(t, e, "verbs: QP 0x11: post send: not allowed in this queue pair state: it is in RTR")
	require.ErrorIs(t, e, verbs.ErrState)
	require.NotErrorIs(t, e, verbs.ErrInvalid)
	require.EqualError(t, &verbs.OpError{Op: "open", Err: syscall.EADDRINUSE}, "verbs: open: address already in use")
}

func TestTransitionErrorText(t *testing.T) {
	e := verbs.TransitionError{Type: verbs.RC, From: verbs.StateInit, To: verbs.StateRTS}
	require.EqualError(t, &e, "RC queue pair cannot go from INIT to RTS")
	require.ErrorIs(t, &e, verbs.ErrInvalid)

	e = verbs.TransitionError{Type: verbs.RC, From: verbs.StateInit, To: verbs.StateRTR, Legal: true,
		Missing: verbs.AttrPathMTU | verbs.AttrDestQPN}
	require.EqualError(t, &e, "RC queue pair from INIT to RTR also needs PATH_MTU|DEST_QPN")
	e.Extra = verbs.AttrTimeout
	require.EqualError(t, &e, "RC queue pair from INIT to RTR also needs PATH_MTU|DEST_QPN and does not take TIMEOUT")
	e.Missing = 0
	require.EqualError(t, &e, "RC queue pair from INIT to RTR does not take TIMEOUT")
}

func TestCompletionErrorText(t *testing.T) {
	wc := verbs.WC{WRID: 7, QPN: 0x11}
	require.NoError(t, wc.Err())

	wc.Status = verbs.WCWRFlushErr
	require.EqualError(t, wc.Err(), "verbs: QP 0x11: work request 7: WR_FLUSH_ERR: "+verbs.Describe(verbs.WCWRFlushErr))

	wc.Status = verbs.WCRemAccessErr
	wc.Failure = &verbs.Failure{
		Event: "peer answered NAK remote access error (0x62)", Opcode: "RDMA_WRITE", PSN: 12345,
		Key: 0x1200, Addr: 0xc000010000, Length: 4096, Retries: 2, Cause: "the key is stale",
	}
	err := wc.Err()
	require.EqualError(t, err, "verbs: QP 0x11: work request 7: REM_ACCESS_ERR: peer answered NAK remote access error (0x62) (RDMA_WRITE, PSN 12345), "+
		"key 0x1200, address 0xc000010000, 4096 bytes, after 2 retries: the key is stale")
	var completion *verbs.CompletionError
	require.True(t, errors.As(err, &completion))
	require.Equal(t, verbs.WCRemAccessErr, completion.Status)
	require.Same(t, wc.Failure, completion.Failure)

	wc.Failure = &verbs.Failure{Event: "no such key"}
	require.EqualError(t, wc.Err(), "verbs: QP 0x11: work request 7: REM_ACCESS_ERR: no such key; "+verbs.Describe(verbs.WCRemAccessErr), "the likely causes, if none is known")
}
