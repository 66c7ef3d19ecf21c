package wiretest

// A reason says why tests do not hold over iWARP.
type reason string

const (
	types      reason = "the test uses UC, UD, address handles or RDMA over UD, and iWARP has reliable connections only"
	faults     reason = "the test injects faults into packets, and TCP carries them here; tc-netem(8) does it there"
	link       reason = "the test opens a link with datagrams: shards, shared addresses, ICM, or a mode of the UDP socket"
	packets    reason = "the test counts, forges or times packets and acknowledgements of RoCE"
	requests   reason = "iWARP has no FLUSH and no ATOMIC WRITE"
	placement  reason = "a WRITE or SEND completes when it is in the TCP stream, which proves neither placement nor success"
	terminated reason = "the peer's error arrives as a TERMINATE, whose text and code differ from those of a NAK, and ends both " +
		"queue pairs"
	noRNR      reason = "a SEND that finds no receive waits in the TCP stream: there are no RNR NAKs, and no limit of retries"
	ended      reason = "the end of a peer is noticed at once, as the end of its TCP connection, and not by lost acknowledgements"
	itself     reason = "a TCP connection has two ends, so no queue pair is connected with itself"
	noPoller   reason = "without a service nobody reads the connection of a device whose program does not poll"
	namespaces reason = "the test opens devices in network namespaces of its threads, and TCP connections are dialed by others"
	messages   reason = "the test sends, expects or counts messages of the InfiniBand communication manager, or their parameters"
	tcpPorts   reason = "ports are those of TCP: port spaces share them, a closed one refuses, and a free one may be reused"
	buffers    reason = "the buffers of the TCP connection take all of the data, so that the sender does not stall"
)

// exceptions is the table.
var exceptions = []exception{
	{"rnic", types, "TestNoAllocation/(datagram|UC).* TestForgedPackets TestCloseInAnyOrder TestNothingLeaks " +
		"TestEverythingAtOnce TestJoinWhileDestroyed " +
		"TestMemoryFaults/.*/.*(UC|UD|datagram).* TestWriteProtectedMemory/.*(UC|UD|datagram).* TestFaultAmidRequests/(UC|UD).* " +
		"TestContract/UnusedFieldsOfRequests TestContract/UnusedRequestFieldsOfDatagramRDMA " +
		"TestContract/UnusedAttributes/(UC|UD) TestContract/UnusedOptionsOfConnect " +
		"TestContract/UnusedSizes " +
		"TestInspect TestInspectMonotonic TestForeignObjects TestAfterDestroy TestAfterClose TestMulticast TestMulticastOverrun " +
		"TestTwoProcesses/.*/(UC|UD) " +
		"TestContract/ResizeCQ TestContract/CQEventsUD TestContract/CQEventsUC TestContract/CQEventsOneShot " +
		"TestContract/QueryDevice TestContract/CreateQP TestContract/CreateQPIllegalCaps " +
		"TestContract/QueryQP " +
		"TestContract/ModifyUDQP TestContract/UDQPPrivilegedQKey TestContract/GSI TestContract/PostReceiveStateBadFlow " +
		"TestContract/PostSendStateBadFlow TestContract/FullRQBadFlow " +
		"TestContract/RQWithLargerSGLBadFlow " +
		"TestContract/UCSend TestContract/UDSend TestContract/UDZeroSize TestContract/UCSendImm TestContract/UDSendImm " +
		"TestContract/UCWrite TestContract/OpcodesOfTypes TestContract/Inline TestContract/Signaling " +
		"TestContract/UDDrops " +
		"TestManagementDoesNotLead TestSRQReceiveOutlivesItsQueuePair TestUnusable TestNilHandles " +
		"TestCompletionFromAnotherGoroutineWakes " +
		"TestPeerHandles Example_datagramRDMA"},
	{"rnic", faults, "TestMalformedPackets TestCountersAgreeWithCapture TestLongPostYieldsToOthers TestLinkChangesDuringWait " +
		"TestCongestionControl TestInspectFaults " +
		"TestTimersOfManyQPs TestImpairedLinkLosesNothing TestSharedMemoryFaults"},
	{"rnic", link, "TestICMInDevice TestOpenMisuse/(portable|shards|shards_in_use|nobody_serves) " +
		"TestOpenEnvironment/SOFTRNIC_(LINK|IMPAIR).* TestSharedAddress.* TestSharedMemory " +
		"TestConnectionsShareRing TestQueueGetsQueuePairsWhileWaitedFor TestContract/QueryPort"},
	{"rnic", packets, "TestAcknowledgeFirst TestAckIntervalWithinMessage TestCork TestCorkBurst TestForgottenBurst " +
		"TestFaultOfLentPayload TestAddressVectorOnTheWire " +
		"TestPacketsDoNotWaitForPolls TestZeroCopyPayloadsAreSent TestContract/QueryConnectedQP " +
		"TestLogEnvironment/(debug|info|warn|error) " +
		"TestInspectFailed"},
	{"rnic", requests, "TestFlush TestFlushTypeViolate TestAtomicWrite"},
	{"rnic", placement, "TestContract/EventCQErr TestContract/EventSQDrained TestContract/EventQPReqErr TestMemoryFaults/.*/peer.* " +
		"TestWriteProtectedMemory/peer.* TestNeighboursOfARegionAreNotWritten " +
		"TestContract/MRReregPD TestContract/MRInvalidAccess TestContract/MRInvalidLocal/no_local_write " +
		"TestContract/InvalidateMWType1 TestContract/MWType2InvalidateLocal " +
		"TestContract/MWType2InvalidateRemote " +
		"TestContract/MWInvalidateRemoteBadFlow TestContract/MWType2InvalidateDealloc TestContract/MWOfAnotherQP " +
		"TestContract/Unsignaled TestContract/Fence TestContract/Transfers TestContract/Loopback TestContract/MWType1 " +
		"TestStuckWaiterIsReported/request_outstanding TestNoAccessAfterEnd/.*/(destroy_the_target's_queue_pair|close_the_target)"},
	{"rnic", terminated, "TestContract/AtomicInvalidQPAccess TestContract/AtomicInvalidMRAccess " +
		"TestContract/AtomicNonAlignedAddr TestContract/AtomicInvalidRKey " +
		"TestContract/MRReregAddr TestContract/MRReregAtomic " +
		"TestContract/MRReregAccessBadFlow TestContract/MRZeroBasedTraffic TestContract/MWType2 " +
		"TestContract/MWType1SendWithInv TestContract/MWBindPermissions TestContract/MessageTooLong"},
	{"rnic", noRNR, "TestContract/SRQEmpty TestContract/NoReceive"},
	{"rnic", ended, "TestPeerIsKilled"},
	{"rnic", itself, "ExampleCompChannel ExampleDevice_InspectQP"},
	{"rnic", noPoller, "TestWaitEndsWithItsContext/(no_service|bare)"},
	{"rnic", namespaces, "TestPortFollowsInterface"},

	{"cm", messages, "TestConnectAndWrite TestExternal.* TestEveryRejectReason TestContexts TestPending TestRestartedPeer " +
		"TestHalfOpenPeers TestWithdrawnRequests " +
		"TestMalformedDatagrams TestDataBeforeRTU TestMisuse TestParametersCross TestDefaults TestForeignPeersGetStandardFields " +
		"TestSmallerMTU " +
		"TestREQBecomesQueuePair TestSelectiveIsNegotiated TestSDP.* TestInconsistentHello TestDeviceShowsCounters TestErrorBeforeFlush"},
	{"cm", types, "TestUC TestUnusedOptions TestDatagrams TestDatagramsRejected TestJoin TestUnusable TestListeners"},
	{"cm", faults, "TestLossyNetwork"},
	{"cm", link, "TestEngines TestPathMTU TestPathChanges TestPathBackChanges TestSharedAddress.*"},
	{"cm", tcpPorts, "TestDialRefusedBySystem TestPortsAreQuarantined TestUnreachable TestAddresses"},

	{"sdp", types, "TestListenErrors TestNetPacketConn TestPacket.* TestListenPacketNames TestUnusable ExampleStack_ListenPacket"},
	{"sdp", faults, "TestKeepAlive TestCloseDelivers/lossy TestFaultsOfDial TestLossyConn TestLossyStream"},
	{"sdp", tcpPorts, "TestDialErrors TestDialNamesSilentSide TestDialUnreachable TestDialRefusedBySystem TestNetListen/taken"},
	{"sdp", messages, "TestHandshakeIsBounded"},
	{"sdp", ended, "TestPeerDies"},
	{"sdp", buffers, "TestStatsOfFullBuffers/(nic|rdma)"},

	{"acp", types, "TestDirectMessages/[12].* TestFreeNeedsNoFurtherCall/.*_1.* TestPeerDiesOverDatagrams TestPrograms " +
		"TestOverDatagrams TestSenderComputes " +
		"TestSlotsThatHaveNotLeft"},
	{"acp", faults, "TestDirectPeerDies TestCopy/loss"},
	{"acp", terminated, "TestBadAddresses TestDirectRefused TestLeaseOfMemory/sender_fails_with_a_message_half_sent " +
		"TestSignalsOutliveRepair"},

	{"mpi", types, "TestAlltoallUD TestAlltoallHybrid TestStopped TestFinalizeMismatch TestPingPongUD TestCollectivesUD " +
		"TestDatagramMemory TestWinDynamicPackets " +
		"TestAlltoallLostRank/(ud|hybrid).* TestBadMessages/(ud|hybrid).* TestLateMismatchKeepsFence/(ud|hybrid).* " +
		"TestDepartEarlyBreaksFence/(ud|hybrid).* TestConnectAllFails/(ud|hybrid).* TestFinalizeWithoutCalls/(ud|hybrid).* " +
		"TestFinalized/(ud|hybrid).* TestInitOfOneRankFails/(ud|hybrid).* TestKinds/(ud|hybrid).* TestPartitioned/(ud|hybrid).* " +
		"TestPartitionedShort/(ud|hybrid).* TestPartitionedGoroutines/(ud|hybrid).* TestPartitionedMatching/(ud|hybrid).* " +
		"TestPartitionedMismatch/(ud|hybrid).* TestPartitionedLostRank/(ud|hybrid).* TestReportPolls/(ud|hybrid).* " +
		"TestReportDeadlock/(ud|hybrid).* TestReportWhileOthersWork/(ud|hybrid).* TestWinAtomicity/(ud|hybrid).* " +
		"TestWinDetachDuringAccess/(ud|hybrid).* TestWinDetachPassive/(ud|hybrid).* TestWinDynamicMisuse/(ud|hybrid).* " +
		"TestWinDynamicModel/(ud|hybrid).* TestWinDynamic/(ud|hybrid).* TestWinModel/(ud|hybrid).* TestWinPassiveTarget/(ud|hybrid).* " +
		"TestWinShapes/(ud|hybrid).*"},
	{"mpi", faults, "TestAlltoallLoss TestFlowImpaired TestLoss TestManyQueuedAlltoalls/loss TestRails/.*loss.* TestRailsPut " +
		"TestImpairedUD TestWinLoss"},
	{"mpi", terminated, "TestWinRequestError"},

	{"rdm", types, "Test.* Example.* Fuzz.*"},
}
