package verbstest

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// An Exception is a documented difference between an adapter and a test of the contract.
type Exception struct {
	Kind   string // of the adapter
	Test   string // name of the test, or of a subtest after a slash; a pattern of path.Match
	Reason string

	// Fails is a regular expression: the test must fail with such a text. It is empty if only
	// statuses differ.
	Fails string

	// Statuses are the statuses of completions that the adapter has in place of others.
	Statuses map[verbs.WCStatus]verbs.WCStatus
}

// Exceptions is the table of exceptions of all adapters.
var Exceptions = []Exception{
	{"rxe", "MRReregAddr", "a request with a wrong lkey completes with LOC_QP_OP_ERR, as a receive does", "", localStatus},
	{"rxe", "MRReregPD", "a receive with memory of another domain completes with LOC_QP_OP_ERR", "", localStatus},
	{"rxe", "MRInvalidLocal/SEND with wrong [kz]e*", "a request with a wrong lkey completes with LOC_QP_OP_ERR", "", localStatus},
	{"rxe", "MRInvalidLocal/RDMA_WRITE with wrong [kz]e*", "a request with a wrong lkey completes with LOC_QP_OP_ERR", "", localStatus},
	{"rxe", "MRReregAccessBadFlow", "rxe raises no QP_ACCESS_ERR", "waiting for QP_ACCESS_ERR", nil},
	{"rxe", "MWOfAnotherQP", "rxe raises no QP_ACCESS_ERR", "waiting for QP_ACCESS_ERR", nil},
	{"rxe", "MWType2", "rxe checks the range of the region, not that of the window", wantAccessErr, nil},
	{"rxe", "MWType1SendWithInv", "SEND with invalidate of a window of type 1 is acknowledged", wantAccessErr, nil},
	{"rxe", "MWInvalidateRemoteBadFlow", "SEND with invalidate of a wrong key is acknowledged", wantAccessErr, nil},
	{"rxe", "MWBindBadFlow/no window", "PostSend refuses the bind", "Bind.MW must be a memory window", nil},
	{"rxe", "MWBindBadFlow/no region", "PostSend refuses the bind", "Bind.MR must be a memory region", nil},
	{"rxe", "MWBindBadFlow/other index", "PostSend refuses the bind", "want the upper 24 bits", nil},
	{"rxe", "MWBindBadFlow/no local access", "PostSend refuses the bind", "want remote access only", nil},
	{"rxe", "MWBindBadFlow/same key", "rxe accepts the key that the window has", `expected: 0x6\s+actual  : 0x0`, nil},
	{"rxe", "CreateQP", "the limits of a device hold one at a time: queues of all of them take more than 1 GiB", "cannot allocate memory", nil},
	{"rxe", "ModifyRCQPRdAtomic", "rxe rounds the number of reads up to a power of two", `expected: int\(12\)\s+actual  : uint8\(0x10\)`, nil},
	{"rxe", "QueryConnectedQP", "rxe rounds the number of reads up to a power of two", `(?s)-\s+MaxDestRdAtomic: \(uint8\) 6,.*\+\s+MaxDestRdAtomic: \(uint8\) 8`, nil},
	{"rxe", "UDQPPrivilegedQKey", "rxe sends the Q_Key of the request, also a privileged one", "context deadline exceeded", nil},
	{"rxe", "MessageTooLong", "a message longer than its receive fails as a malformed one", "",
		map[verbs.WCStatus]verbs.WCStatus{verbs.WCRemInvReqErr: verbs.WCRemOpErr, verbs.WCLocLenErr: verbs.WCLocQPOpErr}},
	{"rxe", "UDDrops", "a datagram longer than its receive fails the receiver's queue pair", "LOC_QP_OP_ERR", nil},
	{"rxe", "MRInvalidLocal/receive without local write", "a receive with an invalid list completes with LOC_QP_OP_ERR", "", localStatus},
	{"rxe", "EventCQErr", "a message whose completion overruns the queue is not acknowledged", "RETRY_EXC_ERR", nil},
	{"rxe", "EventCommEst", "rxe raises no COMM_EST", "waiting for COMM_EST", nil},
	{"rxe", "EventSQDrained", "rxe takes a request that waits for a receive as not started, and drops it", "context deadline exceeded", nil},
	{"rxe", "EventLastWQEReached", "rxe raises no QP_LAST_WQE_REACHED", "waiting for QP_LAST_WQE_REACHED", nil},
	{"rxe", "UnusedFieldsOfRequests/UC BIND_MW of nothing", "rxe binds windows on RC only", "LOC_QP_OP_ERR", nil},
	{"rxe", "UnusedRequestFieldsOfDatagramRDMA", "RDMA between datagram queue pairs needs softrnic", "needs package rnic at both ends", nil},
	{"rxe", "EventCQErrOfRequester", "rxe raises no QP_FATAL", "waiting for QP_FATAL", nil},
	{"rxe", "EventQPReqErr", "rxe raises no QP_REQ_ERR", "waiting for QP_REQ_ERR", nil},
	{"rxe", "EventQPAccessErr", "rxe raises no QP_ACCESS_ERR", "waiting for QP_ACCESS_ERR", nil},
	{"rxe", "GSI", "queue pair 1 of a kernel device belongs to the kernel", "belongs to the kernel", nil},
}

// localStatus is rxe's status of an invalid local key.
var localStatus = map[verbs.WCStatus]verbs.WCStatus{verbs.WCLocProtErr: verbs.WCLocQPOpErr}

// wantAccessErr is the failure of a test that gets success in place of a remote access error.
const wantAccessErr = `expected: 0xa\s+actual  : 0x0`

// findException returns the exception of a test, or nil.
func findException(kind, test string) *Exception {
	for i := range Exceptions {
		if e := &Exceptions[i]; e.Kind == kind && matches(e.Test, test) {
			return e
		}
	}
	return nil
}

func matches(pattern, test string) bool {
	ok, err := path.Match(pattern, test)
	return ok && err == nil
}

// checkExceptions checks that the table names tests that exist.
func checkExceptions(t *testing.T, kind string) {
	names := map[string]bool{}
	for _, c := range tests {
		names[c.name] = true
	}
	for _, e := range Exceptions {
		if e.Kind == kind {
			name, _, _ := strings.Cut(e.Test, "/")
			require.True(t, names[name], "the table of exceptions names the test %s, which does not exist", e.Test)
		}
	}
}
