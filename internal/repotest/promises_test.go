package repotest

import (
	"go/ast"
	"testing"
	"time"

	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// times lists the times in a document.
type times struct {
	promises []promise
	others   []string // quotations with times that are measured, examples, or properties of other programs
	measured bool     // the document has too many of them to list
}

// timesOf returns the times of each document, by file name. A row quotes the sentence
// that makes the promise; when the document changes, the quotation must follow.
func timesOf(t *testing.T) map[string]times {
	k := &constants{t: t, packages: map[string][]*ast.File{}}
	code := func(name string) time.Duration { return verbs.AckTimeout(uint8(k.get(name))) }
	// retries returns the duration of seven retries with a timeout code: the timeouts
	// are 1, 2 and six times 4 of it.
	retries := func(timeout uint8) time.Duration { return 27 * verbs.AckTimeout(timeout) }
	giveUp, second := k.time("mpi.defaultGiveUp"), time.Second
	// Retransmissions of connection management have up to a quarter of jitter.
	unanswered := time.Duration(1+k.get("cm.defaultCMRetries")) * k.time("cm.DefaultResponseTimeout")

	return map[string]times{
		"connection-management.md": {[]promise{
			{"Our RNR timer is [0.64 ms]", time.Duration(wire.RNRNanos(uint8(k.get("verbs.defaultMinRNRTimer")))), true, "TestDefaults TestRNRTimers"},
			{"Codes of peers below [4 ms]", code("cm/internal/protocol.minInterval"), true, "TestTimeoutsAreBounded"},
			{"above [8.6 s] are limited", code("cm/internal/protocol.maxInterval"), true, "TestTimeoutsAreBounded"},
			{"retransmitted after [a quarter of a second] already", k.time("cm/internal/protocol.firstDREQDelay"), false, "TestDREQIsRetransmittedSoon"},
			{"an MRA extends it by [17 s]", k.time("cm.DefaultServiceTimeout"), true, "TestPendingRequestExpires"},
			{"rejected (timeout) after [2 minutes] at most", k.time("cm/internal/protocol.maxPendingTime"), false, "TestPendingRequestExpires"},
			{"as many as retransmissions, [69 s] each", code("cm/internal/protocol.maxServiceTimeout"), true, "TestMRAExtendsTimeout"},
		}, []string{"leaves it at 655 ms", "take 2.2 s"}, false},

		"mpi-hangs.md": {[]promise{
			{"has waited for [a minute] makes rank 0 query", k.time("mpi/internal/detector.defaultAlarm"), false, "TestHangTimes TestReportAlone"},
			{"message. [Twice a second] the detector", k.time("mpi/internal/detector.sampleInterval"), false, "TestHangTimes TestReportWhileOthersWork"},
			{"so it replies within [half a second], with", k.time("mpi/internal/detector.sampleInterval"), false, "TestHangTimes TestReportWhileOthersWork"},
			{"without a reply after [3 s] is named", k.time("mpi/internal/detector.stateTimeout"), false, "TestHangTimes"},
			{"has waited for less than [a second], or has made", k.time("mpi/internal/detector.minWaitAge"), false, "TestHangTimes TestReportOnlyCertain"},
			{"of the knot must have waited for [half a minute]", k.time("mpi/internal/detector.defaultAlarm") / 2, false, "TestHangTimes TestReportOnlyCertain"},
			{"average more than [20 us] pass between", k.time("mpi/internal/detector.maxPollGap"), false, "TestPollsOfComputingRank"},
			{"by ssh, after [15 s]", 15 * second, false, "TestAgentCommand"},
			{"call that has waited for [half a second] sends", k.time("mpi/internal/detector.sampleInterval"), false, "TestHangTimes TestGiveUp"},
			{"at last every [2 s]", giveUp / 5, false, "TestGiveUp"},
			{"the rank is lost: [10 s] after", giveUp, false, "TestGiveUp TestStopped"},
			{"requests within [2 s] share one", k.time("mpi/internal/detector.coalesceTime"), false, "TestHangTimes"},
			{"of a lost rank | [7.5 s] of 10 s", giveUp * 3 / 4, false, "TestGiveUp TestStopped"},
			{"over connections [7 s], the", retries(16), true, "TestGiveUp TestStopped"},
			{"on every net: [10 s], or `GiveUp`", giveUp, false, "TestGiveUp TestStopped"},
			{"one sample, [twice a second]; 32", k.time("mpi/internal/detector.sampleInterval"), false, "TestHangTimes"},
			{"errors of the calls](mpi.md#checks), [within a second].", 2 * k.time("mpi/internal/detector.sampleInterval"), false, "TestMismatch TestHangTimes"},
			{"polls less than [once in a second] counts", 2 * k.time("mpi/internal/detector.sampleInterval"), false, "TestPollsEnd"},
			{"that takes [a second].", 2 * k.time("mpi/internal/detector.sampleInterval"), false, "TestDeath"},
		}, []string{"no reply for 7.5s", "of 10 s (`mpi"}, false},

		"sdp.md": {[]promise{
			{"and fails after about [10 s];", unanswered * 9 / 8, true, "TestDefaultRetransmissions"},
			{"no call has been active for [5 ms], completions", k.time("sdp.idlePollInterval"), false, "TestNoIdlePollDuringReads TestNoEventDuringCalls"},
			{"`OfferTime` ([1 ms])", k.time("sdp.DefaultOfferTime"), false, "TestOptions TestOfferCanceled"},
			{"returns none for [a minute] after the request", k.time("sdp.returnTime"), false, "TestMemoryIsNotGivenBack"},
			{"up to `Linger` ([a minute])", k.time("sdp.DefaultLinger"), false, "TestOptions TestLinger"},
			{"has the error within [7.2 s] or so", retries(16), true, "TestStoppedPeer TestRetryBudget"},
			{"or [1.8 s] if", retries(14), true, "TestStoppedPeer TestRetryBudget"},
			{"`sdp.Options.KeepAlive` is below [10 s]. A connection", k.time("sdp.shortKeepAlive"), false, "TestStoppedPeer"},
			{"by `KeepAlive` ([a minute] by default", k.time("sdp.DefaultKeepAlive"), false, "TestOptions TestKeepAliveSampling TestKeepAliveTime"},
			{"of 3 s the error comes about [5 s] after", 3*second*17/16 + retries(14), true, "TestKeepAliveTime TestRetryBudget"},
			{"within [50 ms] | start", 7 * k.time("reliability.RefusedPause") * 10 / 7, true, "TestDialRefusedBySystem"},
			{"no reply from that address, in about [10 s]", unanswered * 9 / 8, true, "TestDefaultRetransmissions"},
			{"did not accept, in about [26 s]", unanswered + k.time("cm.DefaultServiceTimeout"), true, "TestPendingRequestExpires"},
			{"as every packet, for about [7 s], or", retries(16), true, "TestRetryBudget"},
			{"or [2 s] with a short `KeepAlive`", retries(14), true, "TestRetryBudget"},
			{"and a WriteTo after [10 s] queries it again", k.time("sdp.peerTime"), false, "TestPacketQueriesAgain"},
			{"after a request | [a minute], and", k.time("sdp.returnTime"), false, "TestMemoryIsNotGivenBack"},
			{"duration of a handshake | [10 s] |", k.time("sdp.acceptTime"), false, "TestHandshakeIsBounded"},
			{"has failed resets the remaining connections, within [5 s] by", 5 * second, false, "TestSDPProxyKilled TestSDPProxyTimes"},
		}, []string{"`sdp.Options.KeepAlive` of 3 s"}, false},

		"acp.md": {[]promise{
			{"again after sleeps from [20 us] to", k.time("acp.minSleep"), false, "TestWaitTimes"},
			{"to [1 ms]; immediate data wakes", k.time("acp.maxSleep"), false, "TestWaitTimes"},
			{"after `acp.Options.ProbeDelay` ([500 ms] by default)", k.time("acp.ProbeDelay"), false, "TestPeerDies TestPeerDiesOverDatagrams"},
			{"word for `data.Options.ProbeDelay` ([1 s] by default)", k.time("acp/data.ProbeDelay"), false, "TestHolderDies TestHeld"},
		}, nil, false},

		"datacutter.md": {[]promise{
			{"by an abort, [within a second].", k.time("datacutter.defaultGrace"), false, "TestGrace TestFailureEndsAllHosts"},
			{"than expected, for [10 s] each |", k.time("datacutter.helloTimeout"), false, "TestSilentStranger"},
		}, nil, false},

		"tools.md": {[]promise{
			{"The other side exits within [two seconds].", retries(14), true, "TestPeerDies TestRetryBudget TestKilledEnds"},
			{"sends probes for that [twice a second] (", k.time("cmd/softrnic/internal/rdmacm.probeInterval"), false, "TestKilledEnds"},
			{"Where no ICMP passes it takes [30 s].", k.time("cmd/softrnic/internal/rping.IdleTimeout"), false, "TestSilentPeers"},
			{"A client that sends nothing for [10 s], an", k.time("cmd/softrnic/internal/pingpong.HandshakeTimeout"), false, "TestInvalidClient"},
			{"When no message arrives for [30 s], that", k.time("cmd/softrnic/internal/pingpong.IdleTimeout"), false, "TestIdle"},
			{"stays for [a quarter of a second] after", 4 * verbs.AckTimeout(14), true, "TestExchange"},
			{"receives nothing for [a minute], fails", k.time("cmd/softrnic/internal/perftest.IdleTimeout"), false, "TestIdle"},
			{"seven times [67 ms] to reply", verbs.AckTimeout(14), true, "TestTimeoutTable"},
			{"its next step within [30 s] is", k.time("cmd/softrnic/internal/rping.IdleTimeout"), false, "TestSilentPeers"},
			{"when nothing arrives for [30 s], that", k.time("cmd/softrnic/internal/cmtool.IdleTimeout"), false, "TestIdle"},
			{"`--dial-timeout` ([4 s])", k.time("cmd/softrnic/internal/sdpproxy.DefaultDialTimeout"), false, "TestSDPProxyTimes TestNoServer"},
			{"detected within [5 s], also", 5 * second, false, "TestSDPProxyTimes TestSDPProxyKilled"},
			{"`--keepalive` ([1.5 s])", k.time("cmd/softrnic/internal/sockets.KeepAlive"), false, "TestSDPProxyTimes"},
			{"retries take about [2 s]. A", retries(14), true, "TestRetryBudget TestStoppedPeer"},
			{"idle connection after [4 s].", k.time("cmd/softrnic/internal/sockets.Idle") + time.Duration(k.get("cmd/softrnic/internal/sockets.Count"))*k.time("cmd/softrnic/internal/sockets.Interval"), false, "TestSDPProxyTimes"},
		}, []string{"perftest waits for two minutes"}, false},

		"ud-messages.md": {[]promise{
			{"an ACK is sent after [1 ms].", k.time("internal/nack.AckDelay"), false, "TestDocumentedExample TestAckRequests"},
			{"([10 ms] at first, at", k.time("reliability.initialProbeTimeout"), false, "TestProbeBackoff TestDocumentedExample"},
			{"first, at least [2 ms] and", k.time("reliability.minProbeTimeout"), false, "TestRTTEstimates TestDocumentedExample"},
			{"and at most [20 ms]), the sender", k.time("internal/nack.maxFirstProbe"), false, "TestProbeIntervalIsBounded"},
			{"doubles with each probe, up to [256 ms].", k.time("internal/nack.maxProbeInterval"), false, "TestProbeBackoff TestTail"},
			{"fails if it acknowledges nothing for [30 s]", k.time("internal/nack.GiveUp"), false, "TestGiveUpByDefault TestGiveUp"},
			{"coalesced for up to [50 us].", k.time("mpi/internal/fabric/ud.batchTime"), false, "TestBurst"},
			{"the timer polls every [20 ms],", k.time("mpi/internal/fabric/ud.pollInterval"), false, "TestLostLastDatagram"},
			{"does not respond for [7.5 s] (`mpi", giveUp * 3 / 4, false, "TestGiveUp TestStopped"},
		}, []string{"a one-way delay of 10 us", "after a millisecond. Later"}, false},

		"ud-rdma.md": {[]promise{
			{"a timer every [20 ms] execute", k.time("rdm.pollInterval"), false, "TestDatagramRDMA"},
			{"otherwise within [4 ms] (`qp.AckDelay`)", k.time("qp.AckDelay"), false, "TestDelayAck TestDatagramRDMADelayAck"},
			{"at least [2 ms], or", k.time("reliability.minProbeTimeout"), false, "TestRTTEstimates"},
			{"or [12 ms] if no packet", k.time("reliability.DelayedAckProbe"), false, "TestLazyProbe TestDatagramRDMADelayAckLost"},
		}, nil, false},

		"mpi.md": {[]promise{
			{"polls the device for [50 us], lets", k.time("rnic.DefaultSpin"), false, "TestSpinnerMisses"},
			{"from [4 us] on", k.time("internal/sched.aloneTime"), false, "TestSpinnerMisses"},
			{"and sleep [50 us] in between", k.time("internal/progress.pollSleep"), false, "TestBlockUntil"},
			{"0.5 to [1 s], when", 2 * k.time("mpi/internal/detector.sampleInterval"), false, "TestMismatch TestHangTimes"},
			{"A rank that has waited for [a minute] has", k.time("mpi/internal/detector.defaultAlarm"), false, "TestHangTimes"},
		}, []string{"delay 200us"}, false},

		"mpirun.md": {[]promise{
			{"waits [half a second] after the exit", k.time("cmd/internal/mpirun.causeDelay"), false, "TestFailures"},
			{"shown after [a tenth of a second]. Rank", k.time("cmd/internal/mpirun.partialLineDelay"), false, "TestPrompts"},
			{"`--launch-timeout` ([30 s]; ssh", k.time("cmd/internal/mpirun.launchTimeout"), false, "TestHostsThatCannotBeReached"},
			{"SIGTERM and SIGKILL, [2 s] |", k.time("cmd/softrnic.grace"), false, "TestSignals"},
			{"for the agents to connect, [30 s] |", k.time("cmd/internal/mpirun.launchTimeout"), false, "TestHostsThatCannotBeReached"},
			{"not respond for [15 s] later", 15 * second, false, "TestAgentCommand"},
		}, []string{"`30s`, or a number of seconds", "times out after 10 s"}, false},

		"mpi-onesided.md": {[]promise{
			{"after [10 us] for each lock", k.time("mpi/internal/onesided.pollInterval"), false, "TestWinMutualExclusion"},
			{"and [1 ms] at last", k.time("mpi/internal/onesided.maxPollInterval"), false, "TestWinMutualExclusion"},
			{"when no goroutine has for [2 ms] (`engine", k.time("mpi/internal/engine.IdleInterval"), false, "TestWinPassiveTarget"},
			{"first packet after 2 to [4 ms],", 2 * k.time("mpi/internal/engine.IdleInterval"), false, "TestWinPassiveTarget"},
			{"call that has waited for [half a second] sends", k.time("mpi/internal/onesided.livenessInterval"), false, "TestWinLost"},
		}, nil, false},

		"queue-pair.md": {[]promise{
			{"one retry each [5 ms] until", k.time("reliability.RefusedPause"), false, "TestDialRefusedBySystem TestRefusedSends"},
			{"RETRY_EXC_ERR: [35 ms] with", 7 * k.time("reliability.RefusedPause"), false, "TestDialRefusedBySystem TestRefusedSends"},
		}, nil, false},

		"reliability.md": {[]promise{
			{"2^timeout, at least [16.8 ms], all", k.time("qp.MinAckTimeout"), true, "TestTimeoutTable"},
			{"peer is detected after [0.45 s] with", 27 * k.time("qp.MinAckTimeout"), true, "TestTimeoutTable TestRetryBudget"},
			{"after [1.8 s] with 14, the default.", retries(14), true, "TestRetryBudget"},
			{"doubles the wait, up to [10 ms], because", k.time("reliability.MaxRNRWait"), false, "TestRNRBacksOff TestRNROfAdvertisingPeer"},
			{"[10 ms] before the first sample", k.time("reliability.initialProbeTimeout"), false, "TestRTTEstimates"},
			{"four variations, at least [2 ms], ", k.time("reliability.minProbeTimeout"), false, "TestRTTEstimates"},
			{"acknowledges after at most [4 ms], well", k.time("qp.AckDelay"), false, "TestDelayedAck TestDelayAck"},
			{"timeout is at least [12 ms] while", k.time("reliability.DelayedAckProbe"), false, "TestLazyProbe"},
			{"the timeout is below [12 ms].", k.time("reliability.DelayedAckProbe"), false, "TestDelayedAckWithShortTimeout"},
			{"for at most [20 ms], so that", k.time("rnic.maxTimerDeferral"), false, "TestTimersOfManyQPs"},
			{"the attribute: [1.8 s] with", retries(14), true, "TestRetryBudget"},
			{"verbs.ConnectOptions` and of connection management, [7.2 s] with", retries(16), true, "TestRetryBudget TestStoppedPeer"},
			{"`GiveUp`, by default [10 s]", k.time("qp.giveUp"), false, "TestDatagramRDMAGivesUp"},
			{"leave after at least [0.2 ms] instead", k.time("reliability.earlyProbeTimeout"), false, "TestEarlyProbes"},
			{"instead of [2 ms]. A", k.time("reliability.minProbeTimeout"), false, "TestRTTEstimates"},
			{"a path of more than [0.25 ms] the", k.time("reliability.longPath"), false, "TestBandwidth"},
			{"the shortest one, and at most [1 ms] above", k.time("qp.maxSystemDelay"), false, "TestRoundTripOfWindow"},
		}, []string{"of a path of 10 Gbit/s and 10 ms", "that a path of 10 Gbit/s and 10 ms holds", "Without progress for 4.096 us", "exhausted within 3.5 ms", "reordered by 0.2 ms"}, false},

		"observability.md": {[]promise{
			{"once per queue, after one to [two seconds]:", 2 * k.time("rnic.waitCheckInterval"), false, "TestStuckWaiterIsReported TestWaiterWatchEnds"},
		}, []string{"--watch 1s"}, false},

		"link.md": {[]promise{
			{"blocks for up to [10 ms]; an", k.time("internal/link.maxSendBlock"), false, "TestRetriedSends TestRefusedSends"},
			{"wakes it, within [20 ms]. An", k.time("internal/link/shm.handshakeMax"), false, "TestSilentPeer"},
			{"tries again after [10 ms], then", k.time("internal/link/shm.minRetry"), false, "TestPeerCloses"},
			{"reads the ring after [10 ms], and", k.time("internal/link/shm.joiningWait"), false, "TestLostBeforeRing"},
			{"delays the sender for up to [10 ms]; then", k.time("internal/link/shm.fullWait"), false, "TestFullRing"},
		}, nil, false},

		"collectives.md": {[]promise{
			{"first spins for [4 us]: each", k.time("mpi/internal/collective.spinTime"), false, "TestBoardSleepers"},
			{"polls again, for [100 us] and", k.time("mpi/internal/collective.minSpinTime"), false, "TestBoardSleepers"},
			{"64 times, [5 ms] at most", k.time("mpi/internal/collective.maxSpinTime"), false, "TestBoardSleepers"},
		}, nil, false},

		"engine.md": {[]promise{
			{"within [50 us] (`claimToken`", k.time("rnic.claimWindow"), false, "TestServiceYieldsToken"},
			{"up to [50 us] after the last packet", k.time("rnic.DefaultSpin"), false, "TestSpinnerMisses"},
			{"in between from [4 us] on", k.time("internal/sched.aloneTime"), false, "TestSpinnerMisses"},
			{"more than [2 us] shows", k.time("internal/sched.minSharedYield"), false, "TestSpinnerHogged"},
			{"64 yields or [5 ms] before", k.time("internal/sched.maxSharedSpin"), false, "TestSpinnerHogged"},
			{"A yield of [2 ms] and more", k.time("internal/sched.minHogYield"), false, "TestSpinnerHogged"},
			{"at least every [5 ms].", k.time("rnic.leaderYieldInterval"), false, "TestSpinnerMisses"},
			{"it polls for [50 us], but", k.time("rnic.serviceSpinTime"), false, "TestServiceSpinEnds"},
			{"a yield of less than [200 us]:", k.time("rnic.serviceHogYield"), false, "TestServiceSpinEnds"},
			{"in yields of [4 us] and more", k.time("rnic.minRequestTime"), false, "TestMover"},
			{"at most once in [1 ms],", k.time("rnic.minMovePause"), false, "TestMover"},
			{"down to once in [16 ms],", k.time("rnic.maxMovePause"), false, "TestMover"},
			{"sleeps [50 us], an", k.time("rnic.minMonitorSleep"), false, "TestSleeper"},
			{"not needed, up to [2 ms]. If", k.time("rnic.maxMonitorSleep"), false, "TestSleeper"},
			{"one poll per [20 us] of", k.time("rnic.minPollGap"), false, "TestLeftToService"},
			{"the next one takes [300 us], half", k.time("rnic.requestDelay"), false, "TestPollBusy"},
			{"or after [4 ms];", k.time("qp.AckDelay"), false, "TestDelayAck"},
			{"polls for [50 us], instead", k.time("rnic.handoverTimeout"), false, "TestServiceYieldsToken"},
		}, nil, true},
	}
}
