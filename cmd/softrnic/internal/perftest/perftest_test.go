package perftest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/perftest"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/watch"
	"github.com/softrnic/softrnic/internal/racesync"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

var (
	both  = []string{"send_bw", "write_bw", "read_bw", "atomic_bw"}
	sends = []string{"send_bw", "send_lat"}
)

// variants are sets of options, each with the tests that support it.
var variants = []struct {
	name   string
	tests  []string
	change change
}{
	{"plain", []string{"send_bw", "send_lat", "write_bw", "write_lat", "read_bw", "read_lat", "atomic_bw", "atomic_lat"}, func(*perftest.Options) {}},
	{"UC", []string{"send_bw", "send_lat", "write_lat"}, connection(verbs.UC)},
	{"UD", sends, connection(verbs.UD)},
	{"small", []string{"send_bw", "write_bw", "read_bw"}, func(o *perftest.Options) { o.Size = 100 }},
	{"inline", []string{"send_bw", "write_bw"}, func(o *perftest.Options) { o.Size, o.Inline = 60, 64 }},
	{"large", []string{"send_lat", "write_lat", "read_lat"}, func(o *perftest.Options) { o.Size = 100004 }},
	{"odd", []string{"send_lat", "write_lat", "read_lat"}, func(o *perftest.Options) { o.Size = 1001 }},
	{"both ways", both, func(o *perftest.Options) { o.Bidirectional = true }},
	{"both ways, small", []string{"send_bw", "write_bw"}, func(o *perftest.Options) { o.Bidirectional, o.Size = true, 64 }},
	{"report both", both, func(o *perftest.Options) { o.Bidirectional, o.ReportBoth = true, true }},
	{"queue pairs", both, func(o *perftest.Options) { o.QPs = 3 }},
	{"queue pairs with memory each", both, func(o *perftest.Options) { o.QPs, o.MRPerQP = 3, true }},
	{"lists", both, func(o *perftest.Options) { o.PostList = 5 }},
	{"lists of receives", []string{"send_bw"}, func(o *perftest.Options) { o.RecvPostList = 5 }},
	{"shallow", both, func(o *perftest.Options) { o.TxDepth = 1 }},
	{"few receives", sends, func(o *perftest.Options) { o.RxDepth = 2 }},
	{"all sizes", []string{"send_bw", "send_lat", "write_bw", "write_lat", "read_bw", "read_lat"}, func(o *perftest.Options) { o.All, o.Iters = true, 5 }},
	{"all sizes of datagrams", sends, func(o *perftest.Options) { o.All, o.Iters, o.Connection = true, 5, verbs.UD }},
	{"all sizes both ways", []string{"send_bw", "write_bw", "read_bw"}, func(o *perftest.Options) { o.All, o.Iters, o.Bidirectional = true, 5, true }},
	{"events", []string{"send_bw", "send_lat", "write_bw", "read_bw", "read_lat", "atomic_lat"}, func(o *perftest.Options) { o.Events = true }},
	{"shared receive queue", sends, func(o *perftest.Options) { o.UseSRQ = true }},
	{"shared receive queue of many", []string{"send_bw"}, func(o *perftest.Options) { o.UseSRQ, o.QPs = true, 4 }},
	{"immediate", []string{"send_bw", "send_lat", "write_bw", "write_lat"}, func(o *perftest.Options) { o.WithImm = true }},
	{"immediate, all sizes", []string{"send_bw", "write_bw"}, func(o *perftest.Options) { o.WithImm, o.All, o.Iters = true, true, 5 }},
	{"immediate both ways", []string{"send_bw", "write_bw"}, func(o *perftest.Options) { o.WithImm, o.Bidirectional = true, true }},
	{"server sends", []string{"send_bw", "send_lat", "write_bw", "write_lat", "read_bw", "read_lat"}, func(o *perftest.Options) { o.Reversed = true }},
	{"compare and swap", []string{"atomic_bw", "atomic_lat"}, func(o *perftest.Options) { o.Atomic = perftest.CmpAndSwap }},
	{"one read at a time", []string{"read_bw", "atomic_bw"}, func(o *perftest.Options) { o.OutReads = 1 }},
	{"rate", []string{"send_bw", "write_bw", "read_bw"}, func(o *perftest.Options) { o.Rate = perftest.Rate{Limit: 10000, Units: perftest.RatePPS, Burst: 10} }},
	{"gap", []string{"send_lat", "write_lat", "read_lat"}, func(o *perftest.Options) { o.Gap = 20 * time.Microsecond }},
	{"warm", []string{"write_bw", "read_bw", "atomic_bw"}, func(o *perftest.Options) { o.WarmUp, o.Validate = true, false }},
	{"no versions", []string{"send_bw", "read_lat"}, func(o *perftest.Options) { o.NoVersions = true }},
	{"payload", []string{"send_bw", "write_bw", "read_bw"}, func(o *perftest.Options) { o.Payload = []byte("softrnic") }},
	{"RDMA CM", []string{"send_bw", "send_lat", "write_bw", "write_lat", "read_bw", "read_lat", "atomic_bw", "atomic_lat"}, func(o *perftest.Options) { o.RDMACM = true }},
	{"RDMA CM, queue pairs", both, func(o *perftest.Options) { o.RDMACM, o.QPs = true, 3 }},
	{"RDMA CM, UD", sends, func(o *perftest.Options) { o.RDMACM, o.Connection = true, verbs.UD }},
	{"RDMA CM, UD both ways", []string{"send_bw"}, func(o *perftest.Options) { o.RDMACM, o.Connection, o.Bidirectional, o.QPs = true, verbs.UD, true, 2 }},
	{"RDMA CM, UD and a shared receive queue", []string{"send_lat"}, func(o *perftest.Options) { o.RDMACM, o.Connection, o.UseSRQ = true, verbs.UD, true }},
	{"RDMA CM, both ways", both, func(o *perftest.Options) { o.RDMACM, o.Bidirectional = true, true }},
	{"RDMA CM, no versions", []string{"write_bw"}, func(o *perftest.Options) { o.RDMACM, o.NoVersions = true, true }},
	{"RDMA CM, tos", []string{"write_bw"}, func(o *perftest.Options) { o.RDMACM, o.TOS = true, 32 }},
	{"RDMA CM for the handshake", []string{"send_bw", "read_lat", "write_lat"}, func(o *perftest.Options) { o.CommRDMACM = true }},
	{"MTU 256", []string{"send_bw", "write_bw"}, func(o *perftest.Options) { o.MTU = verbs.MTU256 }},
}

// TestExchange runs every test with every variant, and compares the data.
func TestExchange(t *testing.T) {
	for _, v := range variants {
		for _, name := range v.tests {
			t.Run(name+", "+v.name, func(t *testing.T) {
				o := defaults(name)
				o.Validate = true
				v.change(&o)
				switch {
				case o.All && (racesync.Enabled || testing.Short()) && o.Connection != verbs.UD:
					t.Skip("long")
				case testing.Short() && !o.All:
					o.Iters = 20
				}
				server, client := runBoth(t, o, o)
				require.NoError(t, server.err)
				require.NoError(t, client.err)
				if o.Reversed {
					server, client = client, server
				}
				checkRows(t, o, client)
				if o.Test.Metric == perftest.Bandwidth && !(o.All && !o.Bidirectional && !o.WithImm && o.Test.Verb != perftest.Send) {
					checkRows(t, o, server)
				}
				require.Empty(t, strings.ReplaceAll(client.log, "Max msg size in UD is MTU 4096\nChanging to this MTU\n", ""))
			})
		}
	}
}

// checkRows checks the results of a run.
func checkRows(t *testing.T, o perftest.Options, e outcome) {
	t.Helper()
	rows := 1
	if o.All {
		rows = 23
		if o.Connection == verbs.UD {
			rows = 12
		}
	}
	if o.Test.Metric == perftest.Latency {
		require.Len(t, e.Latency, rows)
		for _, r := range e.Latency {
			require.EqualValues(t, o.Iters, r.Iters)
			require.True(t, 0 < r.Min && r.Min <= r.Typical && r.Typical <= r.Max && r.P99 <= r.P999, "%+v", r)
			require.GreaterOrEqual(t, r.Average, r.Min)
		}
		return
	}
	require.Len(t, e.Bandwidth, rows)
	for i, r := range e.Bandwidth {
		require.EqualValues(t, o.Iters*o.QPs, r.Iters)
		require.Positive(t, r.Average)
		require.Positive(t, r.MsgRate)
		if o.All {
			require.EqualValues(t, 2<<i, r.Size)
		}
	}
}

// TestLossIsCounted checks that lost messages end the test and are counted.
func TestLossIsCounted(t *testing.T) {
	for _, typ := range []verbs.QPType{verbs.UC, verbs.UD} {
		for _, duplex := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v,%v", typ, duplex), func(t *testing.T) {
				t.Parallel()
				o := apply(defaults("send_bw"), connection(typ))
				o.Size, o.Iters, o.Bidirectional = 1000, 200, duplex
				c := o
				c.Device = toolstest.Device(t, rnic.Options{Impair: "loss 10% seed 1"})
				server, client := runBoth(t, o, c)
				require.NoError(t, server.err)
				require.NoError(t, client.err)
				require.Positive(t, server.Lost)
				require.Less(t, server.Lost, int64(100))
				require.Contains(t, server.log, fmt.Sprintf("%d of 200 messages were lost", server.Lost))
				row := server.Bandwidth[0]
				require.EqualValues(t, 200-server.Lost, row.Iters)
			})
		}
	}
}

// TestLossIsRepaired checks that RC retransmits lost packets.
func TestLossIsRepaired(t *testing.T) {
	for _, name := range []string{"send_bw", "write_lat", "read_bw", "atomic_bw"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := defaults(name)
			o.Validate, o.QPTimeout = true, 14
			if name == "write_lat" {
				o.Size = 8
			}
			s, c := o, o
			s.Device = toolstest.Device(t, rnic.Options{Impair: "loss 1% seed 3"})
			c.Device = toolstest.Device(t, rnic.Options{Impair: "loss 1% seed 4"})
			server, client := runBoth(t, s, c)
			require.NoError(t, server.err)
			require.NoError(t, client.err)
		})
	}
}

// TestDuration checks that messages are counted for the given duration.
func TestDuration(t *testing.T) {
	for _, name := range []string{"send_bw", "send_lat", "write_bw", "write_lat", "read_bw", "read_lat", "atomic_bw", "atomic_lat"} {
		for _, duplex := range []bool{false, true} {
			o := defaults(name)
			if duplex && o.Test.Metric == perftest.Latency {
				continue
			}
			t.Run(fmt.Sprintf("%s,%v", name, duplex), func(t *testing.T) {
				o.Bidirectional = duplex
				if name == "write_lat" {
					o.Size = 8
				}
				// On a busy machine there may be no message for a long time.
				for o.Duration = 20 * time.Millisecond; o.Duration < toolstest.HangTimeout; o.Duration *= 2 {
					server, client := runBoth(t, o, o)
					require.NoError(t, server.err)
					require.NoError(t, client.err)
					if o.Test.Metric == perftest.Bandwidth {
						row := client.Bandwidth[0]
						require.Zero(t, row.Peak)
						if row.Iters > 0 {
							require.Positive(t, row.Average)
							return
						}
					} else {
						row := client.Latency[0]
						require.Equal(t, row.Iters > 0, row.TPS > 0)
						if row.Iters > 0 {
							return
						}
					}
				}
				t.Error("nothing happened")
			})
		}
	}
}

// TestDurationFewReceives checks that a side goes on receiving after its duration has ended: the
// peer's may end later, and each of its messages needs a receive. With the RDMA CM the peer may
// disconnect at once.
func TestDurationFewReceives(t *testing.T) {
	for _, duplex := range []bool{false, true} {
		for _, manager := range []bool{false, true} {
			t.Run(fmt.Sprintf("duplex=%v,rdmacm=%v", duplex, manager), func(t *testing.T) {
				o := defaults("send_bw")
				o.Bidirectional, o.Duration, o.RDMACM = duplex, 20*time.Millisecond, manager
				o.TxDepth, o.RxDepth = 256, 1
				server, client := runBoth(t, o, o)
				require.NoError(t, server.err)
				require.NoError(t, client.err)
			})
		}
	}
}

// TestInfinite checks that the test reports until it is interrupted.
func TestInfinite(t *testing.T) {
	for _, name := range []string{"send_bw", "write_bw"} {
		t.Run(name, func(t *testing.T) {
			o := defaults(name)
			o.Infinite, o.Duration, o.Size = true, 20*time.Millisecond, 1000
			host := serve(t, o)
			o.Server, o.Port, o.Device = "127.0.0.1", host.At, toolstest.Device(t, rnic.Options{})
			ctx, cancel := context.WithCancel(toolstest.Context(t))
			out := &reports{done: cancel, left: 3}
			o.Out = out
			client := run(ctx, o)
			require.ErrorIs(t, client.err, context.Canceled)
			require.GreaterOrEqual(t, len(client.Bandwidth), 3)
			server := <-host.Ended
			require.NoError(t, server.err)
			require.Contains(t, server.out, "Client closed connection")
		})
	}
}

// reports is an output that interrupts a test after some rows.
type reports struct {
	done context.CancelFunc
	left int
}

func (r *reports) Write(b []byte) (int, error) {
	if strings.HasPrefix(string(b), " 1000 ") {
		if r.left--; r.left == 0 {
			r.done()
		}
	}
	return len(b), nil
}

// TestLimits checks that a test fails below a limit, at the end that measures.
func TestLimits(t *testing.T) {
	o := defaults("write_bw")
	c := o
	c.LimitBW = 1e9
	_, client := runBoth(t, o, c)
	require.ErrorIs(t, client.err, perftest.ErrLimit)
	require.Len(t, client.Bandwidth, 1)
	c.LimitBW, c.LimitRate = 0.001, 1e9
	_, client = runBoth(t, o, c)
	require.ErrorIs(t, client.err, perftest.ErrLimit)
	c.LimitRate = 1e-9
	_, client = runBoth(t, o, c)
	require.NoError(t, client.err)
}

// TestWrongData checks that wrong data is detected.
func TestWrongData(t *testing.T) {
	for _, name := range []string{"send_bw", "write_bw", "send_lat", "write_lat", "read_bw"} {
		t.Run(name, func(t *testing.T) {
			o := defaults(name)
			o.Validate, o.Size = true, 100
			c := o
			c.Payload = []byte("something else")
			server, client := runBoth(t, o, c)
			var wrong *perftest.DataError
			if o.Test.Verb == perftest.Read {
				require.ErrorAs(t, client.err, &wrong)
			} else {
				require.ErrorAs(t, server.err, &wrong)
			}
			require.ErrorContains(t, wrong, "are both sides run with --data_validation and the same payload?")
		})
	}

	o := defaults("atomic_bw")
	o.Validate = true
	c := o
	c.Iters = 60
	server, _ := runBoth(t, o, c)
	require.ErrorContains(t, server.err, "wrong data: at offset 0 of queue pair 0 is 0x3c and should be 0x32")
}

// TestSizesDiffer checks that different sizes are detected at the first message if the peers
// exchange no versions, and so no parameters.
func TestSizesDiffer(t *testing.T) {
	for _, name := range sends {
		o := defaults(name)
		o.Size, o.NoVersions = 512, true
		c := o
		c.Size = 256
		server, client := runBoth(t, o, c)
		require.ErrorContains(t, server.err, "message of 256 bytes received, want 512; give both sides the same -s", name)
		require.ErrorIs(t, client.err, oob.ErrPeerClosed)
	}
}

// TestPeerDies ends a client in the middle of each test: its server ends, too, and reports that the
// client has disconnected.
func TestPeerDies(t *testing.T) {
	for _, test := range perftest.Tests {
		t.Run(test.String(), func(t *testing.T) {
			t.Parallel()
			o := defaults(test.String())
			o.Duration = time.Hour
			host := serve(t, o)
			c := o
			c.Server, c.Port, c.Device = "127.0.0.1", host.At, toolstest.Device(t, rnic.Options{})
			ctx, cancel := context.WithCancel(toolstest.Context(t))
			c.Out = &header{cancel}
			client := run(ctx, c)
			require.ErrorIs(t, client.err, context.Canceled)
			server := <-host.Ended
			require.ErrorIs(t, server.err, oob.ErrPeerClosed)
		})
	}
}

// header interrupts a test when the table starts.
type header struct{ cancel context.CancelFunc }

func (h *header) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "#bytes") {
		h.cancel()
	}
	return len(b), nil
}

// TestIdle checks that a test without progress ends, in every wait.
func TestIdle(t *testing.T) {
	for _, c := range []struct {
		name   string
		impair string // on the server
		change change
	}{
		{"send_lat", "drop 10th SEND_ONLY", connection(verbs.UD)},
		{"write_lat", "drop 10th WRITE_ONLY", connection(verbs.UC)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := apply(defaults(c.name), c.change)
			o.IdleTimeout, o.Size = 200*time.Millisecond, 8
			s := o
			s.Device = toolstest.Device(t, rnic.Options{Impair: c.impair})
			o.IdleTimeout *= 5 // the server times out first
			server, client := runBoth(t, s, o)
			require.ErrorIs(t, server.err, watch.ErrIdle)
			require.ErrorContains(t, server.err, "this transport does not retransmit")
			require.Error(t, client.err)
		})
	}
}

// TestCounters checks that the increase of counters is reported.
func TestCounters(t *testing.T) {
	o := defaults("send_bw")
	o.Counters = []string{"hw_counters/sent_pkts", "counters/rcvd_pkts"}
	o.Counter = func(dev verbs.Device, name string) (uint64, bool) {
		for have, value := range dev.(*rnic.Device).Inspect().Counters.All() {
			if have == name {
				return value, true
			}
		}
		return 0, false
	}
	server, client := runBoth(t, o, o)
	require.NoError(t, server.err)
	require.NoError(t, client.err)
	require.Regexp(t, `\thw_counters/sent_pkts=\d{3,}\n\tcounters/rcvd_pkts=\d+\n\n`, client.out)

	c := o
	c.Counters = []string{"no_such"}
	_, client = runBoth(t, o, c)
	require.ErrorContains(t, client.err, `-W: the device has no counter "no_such"`)
}
