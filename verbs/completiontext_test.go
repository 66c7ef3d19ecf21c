package verbs_test

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

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
