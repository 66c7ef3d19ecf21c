package verbs_test

import (
	"errors"
	"net/netip"
	"strings"
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

// maxStory is the maximum length in bytes of the text of a failed completion.
const maxStory = 250

// checkStory checks the text of an error: short, no sentence twice.
func checkStory(t *testing.T, text string) {
	t.Helper()
	require.LessOrEqual(t, len(text), maxStory, text)
	seen := map[string]bool{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == ';' }) {
		part = strings.TrimSpace(part)
		require.False(t, len(part) > 4 && seen[part], "%q is there twice: %s", part, text)
		seen[part] = true
	}
}

// TestStatusTexts checks the text of every status without a Failure.
func TestStatusTexts(t *testing.T) {
	for s := verbs.WCLocLenErr; s <= verbs.WCTMRndvIncomplete; s++ {
		wc := verbs.WC{WRID: 7, QPN: 0xffffff, Status: s}
		text := wc.Err().Error()
		checkStory(t, text)
		require.Contains(t, text, "QP 0xffffff")
		require.Contains(t, text, s.String())
	}
}

// TestRefusedTexts checks that a refused send names the peer, the error and the remedy.
func TestRefusedTexts(t *testing.T) {
	peer := netip.MustParseAddrPort("[2001:db8::6666]:4791")
	for _, errno := range []syscall.Errno{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.EINVAL, syscall.EPERM, syscall.EACCES,
		syscall.EMSGSIZE, syscall.ENOBUFS, syscall.EAGAIN, syscall.ECONNREFUSED, syscall.ENETDOWN} {
		for _, icmp := range []bool{false, true} {
			e := &verbs.RefusedError{Peer: peer, Err: errno, ICMP: icmp, Size: 4164, MTU: 1500}
			why := e.Failure()
			why.Opcode, why.PSN, why.Retries = "RDMA_WRITE_WITH_IMM", 1<<24-1, 7
			wc := verbs.WC{WRID: 7, QPN: 0xffffff, Status: verbs.WCRetryExcErr, Failure: why}
			for _, text := range []string{e.Error(), wc.Err().Error()} {
				checkStory(t, text)
				require.Contains(t, text, peer.String())
				require.Contains(t, text, errno.Error())
			}
			require.ErrorIs(t, wc.Err(), errno)
			require.ErrorIs(t, e, errno)
		}
	}
}
