package rnic

import (
	"flag"
	"os"
	"strings"
)

// wireExceptions are the tests of this package that do not apply to iWARP, by the reason. All others hold
// with both protocols: SOFTRNIC_WIRE=iwarp go test ./rnic.
var wireExceptions = []struct{ reason, tests string }{
	{"packets, acknowledgements, numbers and rates", "TestAcknowledgeFirst|TestAckInterval|Cork|Burst|TestForgedPackets|TestMalformedPackets|" +
		"TestCloseSendsPendingAck|TestLongPostYieldsToOthers|ICRC|Congestion|Selective|PathMTU|Refus|ICM"},
	{"faults that are injected, and captures", "TestCountersAgreeWithCapture|TestLinkChangesDuringWait|TestNothingLeaks|Capture|Impair"},
	{"queue pairs of other types, requests that iWARP lacks, shards and shared addresses", "TestCloseInAnyOrder|TestNoAllocation|TestJoinWhileDestroyed|TestEverythingAtOnce|" +
		"Multicast|UD|UC|TestFlush|TestAtomicWrite|TestFaultOfLentPayload|TestAddressVector|Datagram|PeerAH|Share|Shard|TestMemoryFaults|TestWriteProtectedMemory"},
	{"a WRITE completes when it is in the TCP stream, and a failed queue pair takes its peer with it", "TestEventQPReqErr|TestEventSQDrained|" +
		"TestNoAccessAfterEnd|TestEventCQErr$|TestMWBindPermissions"},
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
