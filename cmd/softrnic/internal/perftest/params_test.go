package perftest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/perftest"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestParametersDiffer starts both ends with different parameters: both fail before the first
// message of the test, name the difference, and print no result.
func TestParametersDiffer(t *testing.T) {
	size := func(n int) change { return func(o *perftest.Options) { o.Size = n } }
	iters := func(n int) change { return func(o *perftest.Options) { o.Iters = n } }
	timed := func(d time.Duration) change { return func(o *perftest.Options) { o.Duration = d } }
	all := func(o *perftest.Options) { o.All = true }
	both := func(o *perftest.Options) { o.Bidirectional = true }
	reversed := func(o *perftest.Options) { o.Reversed = true }
	queuePairs := func(o *perftest.Options) { o.QPs = 2 }
	immediate := func(o *perftest.Options) { o.WithImm = true }
	infinite := func(o *perftest.Options) { o.Infinite = true }
	validate := func(o *perftest.Options) { o.Validate = true }
	gbits := func(o *perftest.Options) { o.Gbits = true }
	overCM := func(o *perftest.Options) { o.CommRDMACM = true }
	for _, c := range []struct {
		name           string
		server, client perftest.Options
		want           string // in the server's error
	}{
		{"transport", defaults("send_bw"), apply(defaults("send_bw"), connection(verbs.UC)), "-c is RC here and UC at the peer"},
		{"datagrams", apply(defaults("send_lat"), connection(verbs.UD)), defaults("send_lat"), "-c is UD here and RC at the peer"},
		{"test", defaults("write_bw"), defaults("send_bw"), "test is write_bw here and send_bw at the peer"},
		{"metric", defaults("send_lat"), defaults("send_bw"), "test is send_lat here and send_bw at the peer"},
		{"reads", defaults("read_bw"), defaults("write_bw"), "test is read_bw here and write_bw at the peer"},
		{"atomics", defaults("atomic_lat"), defaults("read_lat"), "test is atomic_lat here and read_lat at the peer"},
		{"size", apply(defaults("send_bw"), size(4096)), apply(defaults("send_bw"), size(65536)), "-s is 4096 here and 65536 at the peer"},
		{"size of writes", apply(defaults("write_bw"), size(2)), apply(defaults("write_bw"), size(3)), "-s is 2 here and 3 at the peer"},
		{"all sizes", apply(defaults("write_bw"), all), defaults("write_bw"), "-s is all (-a) here and 65536 at the peer"},
		{"messages", apply(defaults("send_bw"), iters(10)), apply(defaults("send_bw"), iters(20)), "-n is 10 here and 20 at the peer"},
		{"rounds of writes", apply(defaults("write_lat"), iters(10)), apply(defaults("write_lat"), iters(20)), "-n is 10 here and 20 at the peer"},
		{"duration", apply(defaults("send_bw"), timed(time.Second)), defaults("send_bw"), "-D is 1s here and not set at the peer, -n is not set here and 50 at the peer"},
		{"directions", apply(defaults("write_bw"), both), defaults("write_bw"), "-b is on here and not set at the peer"},
		{"who sends", defaults("write_bw"), apply(defaults("write_bw"), reversed), "--reversed is not set here and on at the peer"},
		{"queue pairs", apply(defaults("read_bw"), queuePairs), defaults("read_bw"), "-q is 2 here and 1 at the peer"},
		{"immediate data", apply(defaults("write_bw"), immediate), defaults("write_bw"), "--send_with_imm, --write_with_imm is on here and not set at the peer"},
		{"without end", apply(defaults("write_bw"), infinite), defaults("write_bw"), "--run_infinitely is on here"},
		{"validation", apply(defaults("write_bw"), validate), defaults("write_bw"), "--data_validation is on here"},
		{"units", apply(defaults("write_bw"), gbits), defaults("write_bw"), "--report_gbits is on here"},
		{"over the RDMA CM", apply(defaults("send_bw"), overCM), apply(defaults("send_bw"), overCM, size(1)), "-s is 65536 here and 1 at the peer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server, client := runBoth(t, c.server, c.client)
			for _, end := range []outcome{server, client} {
				require.ErrorIs(t, end.err, oob.ErrParams)
				require.Nil(t, end.Result, "printed %s", end.out)
			}
			require.ErrorContains(t, server.err, c.want)
		})
	}
}

// TestParametersMayDiffer checks that options of one end alone may differ.
func TestParametersMayDiffer(t *testing.T) {
	server := apply(defaults("write_bw"), func(o *perftest.Options) { o.Iters = 7; o.TxDepth = 3; o.Events = true })
	s, c := runBoth(t, server, defaults("write_bw"))
	require.NoError(t, s.err)
	require.NoError(t, c.err)
}

// TestInterrupted interrupts each test in the middle: it reports the measurements until then, also
// in the first margin of a test with a given duration, and where messages are not acknowledged, so
// that every poll returns completions.
func TestInterrupted(t *testing.T) {
	iters := func(o *perftest.Options) { o.Iters = 1e7 }
	timed := func(o *perftest.Options) { o.Duration = time.Hour }
	type row struct {
		test    perftest.Test
		changes []change
	}
	var rows []row
	for _, test := range perftest.Tests {
		rows = append(rows, row{test, []change{iters}})
	}
	for name, typ := range map[string]verbs.QPType{"send_lat": verbs.RC, "send_bw": verbs.UC, "write_bw": verbs.UC} {
		rows = append(rows, row{findTest(name), []change{timed, connection(typ)}})
	}
	for i, c := range rows {
		test := c.test
		t.Run(fmt.Sprintf("%v,%d", test, i), func(t *testing.T) {
			t.Parallel()
			o := apply(defaults(test.String()), c.changes...)
			dev := toolstest.Device(t, rnic.Options{})
			s := serve(t, apply(o, func(o *perftest.Options) { o.Device = dev }))
			ctx, interrupt := context.WithCancel(toolstest.Context(t))
			ended := make(chan outcome, 1)
			o.Server, o.Port, o.Device = "127.0.0.1", s.At, toolstest.Device(t, rnic.Options{})
			go func() { ended <- run(ctx, o) }()
			require.Eventually(t, func() bool { return dev.(*rnic.Device).Inspect().Counters.RcvdPkts > 3000 }, toolstest.HangTimeout, time.Millisecond)
			interrupt()
			e := <-ended
			require.ErrorIs(t, e.err, context.Canceled)
			if test.Metric == perftest.Latency {
				require.Len(t, e.Latency, 1)
				require.Positive(t, e.Latency[0].Average)
			} else {
				require.Len(t, e.Bandwidth, 1)
				require.Positive(t, e.Bandwidth[0].Average)
				require.Less(t, e.Bandwidth[0].Iters, int64(1e7))
			}
			require.ErrorIs(t, (<-s.Ended).err, oob.ErrPeerClosed)
		})
	}
}
