package rnic

import (
	"flag"
	"os"
	"strings"
)

// wireExceptions are the tests of this package that do not apply to iWARP as they are, by the reason. The
// table is of one run, SOFTRNIC_WIRE=iwarp go test -short ./rnic, which ended before the last tests.
var wireExceptions = []struct{ reason, tests string }{
	{"packets, acknowledgements, numbers and rates", "TestAcknowledgeFirst|TestAckInterval|Cork|Burst|TestForgedPackets|TestMalformedPackets|" +
		"TestCloseSendsPendingAck|TestLongPostYieldsToOthers|ICRC|Congestion|Selective|PathMTU|Refus|ICM"},
	{"faults that are injected, and captures", "TestCountersAgreeWithCapture|TestLinkChangesDuringWait|TestNothingLeaks|Capture|Impair"},
	{"queue pairs of other types, requests that iWARP lacks, shards and shared addresses", "TestCloseInAnyOrder|TestNoAllocation|TestJoinWhileDestroyed|TestEverythingAtOnce|" +
		"Multicast|UD|UC|TestFlush|TestAtomicWrite|TestFaultOfLentPayload|TestAddressVector|Datagram|PeerAH|Share|Shard|TestMemoryFaults|TestWriteProtectedMemory|" +
		"TestTwoProcesses|TestAfterClose|TestAfterDestroy|TestResizeCQ|TestCQEventsOneShot|TestForeignObjects|TestCreateQP|TestQuery|TestGSI|" +
		"TestPostReceiveState|TestPostSendState|TestFullRQ|TestRQWithLarger|TestUnused|TestInspect|TestOpen|TestLogEnvironment|TestPortFollows"},
	{"a WRITE completes when it is in the TCP stream, and a failed queue pair takes its peer with it", "TestEventQPReqErr|TestEventSQDrained|" +
		"TestNoAccessAfterEnd|TestEventCQErr$|" +
		"TestNeighboursOf|TestMW|TestInvalidateMW|TestMR|TestAtomicInvalid|TestAtomicNonAligned|TestPacketsDoNotWaitForPolls|TestPeerIsKilled|" +
		"TestFaultAmidRequests"},
}

// skipWireExceptions skips the tests that do not apply to the protocol of the environment.
func skipWireExceptions() {
	if Wire(os.Getenv(EnvWire)) != IWARP {
		return
	}
	var tests []string
	for _, e := range wireExceptions {
		tests = append(tests, e.tests)
	}
	_ = flag.Set("test.skip", strings.Join(tests, "|")) // the flag exists
}
