package perftest_test

import (
	"encoding/json"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/option"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/perftest"
	"github.com/softrnic/softrnic/cmd/softrnic/internal/toolstest"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// TestOptions checks that invalid options are rejected with the flag and the reason.
func TestOptions(t *testing.T) {
	dev := toolstest.Device(t, rnic.Options{})
	for _, c := range []struct {
		test   string
		change change
		text   string
	}{
		{"send_bw", func(o *perftest.Options) { o.Port = -1 }, "-p: -1 is not one of 0 to 65535"},
		{"send_bw", func(o *perftest.Options) { o.Server, o.Port = "x", 0 }, "-p: a client needs"},
		{"send_bw", func(o *perftest.Options) { o.Iters = 4 }, "-n: 4 is not one of 5 to"},
		{"send_bw", func(o *perftest.Options) { o.Size = 0 }, "-s: 0 is not"},
		{"send_bw", func(o *perftest.Options) { o.TxDepth = 0 }, "-t: 0 is not"},
		{"send_bw", func(o *perftest.Options) { o.RxDepth = 20000 }, "-r: 20000 is not"},
		{"send_bw", func(o *perftest.Options) { o.CQMod = 2000 }, "-Q: 2000 is not"},
		{"send_bw", func(o *perftest.Options) { o.QPs = 0 }, "-q: 0 is not"},
		{"send_bw", func(o *perftest.Options) { o.PostList = 129 }, "-l: 129 is not"},
		{"send_bw", func(o *perftest.Options) { o.PostList = 7 }, "-l: the iterations have to be a multiple"},
		{"send_bw", func(o *perftest.Options) { o.PostList, o.CQMod = 10, 4 }, "-Q: the list has to be a multiple"},
		{"send_bw", func(o *perftest.Options) { o.RecvPostList = 3 }, "--recv_post_list: the iterations"},
		{"send_bw", func(o *perftest.Options) { o.Inline = 1000 }, "-I: 1000 is not"},
		{"send_bw", func(o *perftest.Options) { o.SL = 16 }, "-S: 16 is not"},
		{"send_bw", func(o *perftest.Options) { o.QPTimeout = 32 }, "-u: 32 is not"},
		{"send_bw", func(o *perftest.Options) { o.MTU = 6 }, "-m: the MTU is"},
		{"send_bw", func(o *perftest.Options) { o.TOS = 4 }, "-T: is for what -R connects"},
		{"write_bw", connection(verbs.UD), "-c: datagrams can only be sent"},
		{"read_bw", connection(verbs.UC), "-c: unreliable connections"},
		{"send_bw", connection(verbs.GSI), "-c: there are RC, UC and UD"},
		{"send_bw", func(o *perftest.Options) { o.RDMACM, o.Connection = true, verbs.UC }, "-R: the RDMA CM connects no UC"},
		{"atomic_bw", func(o *perftest.Options) { o.Size = 16 }, "-s: atomics have 8 bytes"},
		{"atomic_bw", func(o *perftest.Options) { o.All = true }, "-a: atomics have 8 bytes"},
		{"atomic_bw", func(o *perftest.Options) { o.Atomic = "ADD" }, "-A: there are"},
		{"send_bw", func(o *perftest.Options) { o.All, o.Duration = true, time.Second }, "-D: does not go with all sizes"},
		{"send_bw", func(o *perftest.Options) { o.Duration, o.Margin = time.Second, time.Second/2 }, "-f: the margins leave nothing"},
		{"send_bw", func(o *perftest.Options) { o.Events, o.Duration = true, time.Second }, "-e: does not go with a duration"},
		{"send_lat", func(o *perftest.Options) { o.Bidirectional = true }, "-b: is for bandwidth tests"},
		{"send_lat", func(o *perftest.Options) { o.QPs = 2 }, "-q: latency is that of one queue pair"},
		{"read_bw", func(o *perftest.Options) { o.WithImm = true }, "--write_with_imm: only what is written"},
		{"write_bw", func(o *perftest.Options) { o.UseSRQ = true }, "--use-srq: is for send tests"},
		{"send_bw", func(o *perftest.Options) { o.UseSRQ, o.QPs, o.RxDepth = true, 4, 2 }, "--use-srq: each queue pair needs a receive"},
		{"send_lat", func(o *perftest.Options) { o.Infinite = true }, "--run_infinitely: is for bandwidth"},
		{"send_bw", func(o *perftest.Options) { o.Infinite, o.Bidirectional = true, true }, "--run_infinitely: does not go with sends both ways"},
		{"send_bw", func(o *perftest.Options) { o.Gap = 1 }, "--latency_gap: is for latency"},
		{"atomic_bw", func(o *perftest.Options) { o.Rate.Limit = 1 }, "--rate_limit: is for"},
		{"send_bw", func(o *perftest.Options) { o.WarmUp = true }, "--perform_warm_up: would take receives"},
		{"send_bw", func(o *perftest.Options) { o.Validate, o.Duration = true, time.Second }, "--data_validation: needs a number"},
		{"send_bw", func(o *perftest.Options) { o.Histogram = true }, "-H: -H, -U and -C are for latency"},
		{"send_bw", func(o *perftest.Options) { o.CPUUtil = true }, "--cpu_util: needs a duration"},
		{"send_bw", func(o *perftest.Options) { o.Output = perftest.OutputLatency }, "--output: of a bandwidth test"},
		{"send_lat", func(o *perftest.Options) { o.Output = perftest.OutputBandwidth }, "--output: of a latency test"},
		{"send_bw", func(o *perftest.Options) { o.ReportBoth = true }, "--report-both: needs both directions"},
		{"send_lat", func(o *perftest.Options) { o.LimitBW = 1 }, "-w: -w and -y are for bandwidth"},
		{"send_bw", func(o *perftest.Options) { o.Counters = []string{"x"} }, "-W: the device has no counters"},
		{"send_bw", func(o *perftest.Options) { o.Device = nil }, "device: none given"},
	} {
		t.Run(c.text, func(t *testing.T) {
			o := defaults(c.test)
			o.Device = dev
			c.change(&o)
			_, err := perftest.Run(toolstest.Context(t), o)
			var wrong *option.Error
			require.ErrorAs(t, err, &wrong)
			require.ErrorContains(t, err, c.text)
		})
	}
}

// TestDeviceRefuses checks that options that the device does not support are rejected once it is
// open.
func TestDeviceRefuses(t *testing.T) {
	for _, c := range []struct {
		test   string
		change change
		text   string
	}{
		{"send_bw", func(o *perftest.Options) { o.Connection, o.Size = verbs.UD, 5000 }, "-s: 5000 bytes are more than the MTU (4096)"},
		{"read_bw", func(o *perftest.Options) { o.OutReads = 200 }, "-o: the device takes at most 128"},
		{"send_bw", func(o *perftest.Options) { o.GIDIndex = 5 }, "GID"},
		{"send_bw", func(o *perftest.Options) { o.IBPort = 3 }, "port"},
		{"send_bw", func(o *perftest.Options) {
			o.Device = toolstest.Device(t, rnic.Options{Addr: netip.MustParseAddrPort("127.0.0.1:0"), AnyPort: true})
		}, "want 4791: the handshake cannot carry a UDP port"},
	} {
		t.Run(c.text, func(t *testing.T) {
			o := defaults(c.test)
			o.NoVersions = true // the ends need not be equal
			host := serve(t, o)
			o.Server, o.Port, o.Device = "127.0.0.1", host.At, toolstest.Device(t, rnic.Options{})
			c.change(&o)
			client := run(toolstest.Context(t), o)
			require.ErrorContains(t, client.err, c.text)
			require.Error(t, host.Next(t), "the server waits for the next")
		})
	}
}

// TestJSON checks that the output is valid JSON with perftest's members in perftest's order.
func TestJSON(t *testing.T) {
	for _, c := range []struct {
		test   string
		change change
		info   []string
		result []string
		rows   int // in a list; 0 is one object
	}{
		{"write_bw", func(*perftest.Options) {}, []string{"test", "Dual_port", "Device", "Number_of_qps", "Transport_type", "Connection_type", "Using_SRQ",
			"PCIe_relax_order", "ibv_wr_API", "TX_depth", "CQ_Moderation", "Mtu", "Link_type", "GID_index", "Max_inline_data", "rdma_cm_QPs", "Data_ex_method"},
			[]string{"MsgSize", "n_iterations", "BW_peak", "BW_average", "MsgRate"}, 0},
		{"read_lat", func(*perftest.Options) {}, []string{"test", "Dual_port", "Device", "Number_of_qps", "Transport_type", "Connection_type", "Using_SRQ",
			"PCIe_relax_order", "ibv_wr_API", "TX_depth", "Mtu", "Link_type", "GID_index", "Outstand_reads", "rdma_cm_QPs", "Data_ex_method"},
			[]string{"MsgSize", "n_iterations", "t_min", "t_max", "t_typical", "t_avg", "t_stdev", "percentile_99", "percentile_99.9"}, 0},
		{"send_bw", func(o *perftest.Options) { o.Connection, o.All, o.Iters = verbs.UD, true, 5 }, nil,
			[]string{"MsgSize", "n_iterations", "BW_peak", "BW_average", "MsgRate"}, 12},
		{"send_bw", func(o *perftest.Options) { o.Output = perftest.OutputMessageRate }, nil, []string{"msgRate_avg"}, 0},
		{"send_bw", func(o *perftest.Options) { o.Output = perftest.OutputBandwidth }, nil, []string{"bw_avg"}, 0},
		{"send_lat", func(o *perftest.Options) { o.Output = perftest.OutputLatency }, nil, []string{"avg_lat"}, 0},
		{"send_lat", func(o *perftest.Options) { o.Duration = 20 * time.Millisecond }, nil, []string{"MsgSize", "n_iterations", "t_avg", "tps_average"}, 0},
		{"send_bw", func(o *perftest.Options) { o.Duration = 20 * time.Millisecond; o.CPUUtil = true }, nil,
			[]string{"MsgSize", "n_iterations", "BW_peak", "BW_average", "MsgRate", "CPU_util"}, 0},
	} {
		o := apply(defaults(c.test), c.change)
		if o.CPUUtil && runtime.GOOS != "linux" {
			continue
		}
		server, client := runBoth(t, o, o)
		require.NoError(t, server.err)
		require.NoError(t, client.err)
		text, err := client.JSON()
		require.NoError(t, err)
		var document struct {
			Info    json.RawMessage `json:"test_info"`
			Results json.RawMessage `json:"results"`
		}
		require.NoError(t, json.Unmarshal(text, &document), "%s", text)
		if c.info != nil {
			require.Equal(t, c.info, members(t, document.Info))
		}
		if c.rows == 0 {
			require.Equal(t, c.result, members(t, document.Results))
			continue
		}
		var rows []json.RawMessage
		require.NoError(t, json.Unmarshal(document.Results, &rows))
		require.Len(t, rows, c.rows)
		require.Equal(t, c.result, members(t, rows[0]))
	}
}

// members returns the names in a JSON object, in order.
func members(t *testing.T, object json.RawMessage) (names []string) {
	d := json.NewDecoder(strings.NewReader(string(object)))
	_, err := d.Token()
	require.NoError(t, err)
	for d.More() {
		name, err := d.Token()
		require.NoError(t, err)
		names = append(names, name.(string))
		var value any
		require.NoError(t, d.Decode(&value))
	}
	return names
}

// TestReports checks the other forms of the report.
func TestReports(t *testing.T) {
	for _, c := range []struct {
		test   string
		change change
		form   string
	}{
		{"send_bw", func(o *perftest.Options) { o.Output = perftest.OutputBandwidth }, `\A\d+\.\d{6}\n\z`},
		{"send_bw", func(o *perftest.Options) { o.Output = perftest.OutputMessageRate }, `\A\d+\.\d{6}\n\z`},
		{"write_bw", func(o *perftest.Options) { o.Gbits = true }, `BW peak\[Gb/sec\]    BW average\[Gb/sec\]   MsgRate\[Mpps\]\n 65536      50  `},
		{"write_bw", func(o *perftest.Options) { o.NoPeak = true }, ` 65536      50               0.00  `},
		{"write_bw", func(o *perftest.Options) { o.Bidirectional, o.ReportBoth = true, true },
			`(?s)\n 65536 .*\n-+\n\n Local results: \n-+\n #bytes.*\n 65536 .*\n-+\n\n Remote results: \n-+\n #bytes.*\n 65536 `},
		{"send_lat", func(o *perftest.Options) { o.Output = perftest.OutputLatency }, `\A\d+\.\d{6}\n\z`},
		{"send_lat", func(o *perftest.Options) { o.Histogram = true }, `(?s)#, usec\n1, [\d.]+\n2, .*\n47, [\d.]+\n-+\n #bytes #iterations.*\n 2       50  `},
		{"send_lat", func(o *perftest.Options) { o.Unsorted = true }, `(?s)#, usec\n1, [\d.]+\n2, .*\n49, [\d.]+\n#, usec\n1, .*\n47, `},
		{"send_lat", func(o *perftest.Options) { o.Duration = 20 * time.Millisecond },
			`#bytes        #iterations       t_avg\[usec\]    tps average\n 2             +\d+            \d`},
		{"send_bw", func(o *perftest.Options) { o.Duration, o.CPUUtil = 50*time.Millisecond, true }, `MsgRate\[Mpps\]    CPU_Util\[%\]\n .*\t    \d+\.\d\d\n`},
		{"send_bw", func(o *perftest.Options) { o.Events = true }, `Send BW Test\n Test with events. Using \w+_comp0\n Dual-port`},
		{"send_bw", func(o *perftest.Options) { o.PostList = 5 }, `(?s)Send Post List BW Test.* TX depth        : 50\n Post List       : 5\n CQ Moderation   : 5\n`},
	} {
		o := apply(defaults(c.test), c.change)
		if o.CPUUtil && runtime.GOOS != "linux" {
			continue
		}
		server, client := runBoth(t, o, o)
		require.NoError(t, server.err)
		require.NoError(t, client.err)
		if o.Output != perftest.OutputFull {
			require.Regexp(t, c.form, server.out)
		}
		require.Regexp(t, c.form, client.out)
	}
}

func TestParsePayload(t *testing.T) {
	b, err := perftest.ParsePayload("0x64636261, 0x6867\n0X1")
	require.NoError(t, err)
	require.Equal(t, "abcdgh\x00\x00\x01\x00\x00\x00", string(b))
	for _, text := range []string{"", "64636261", "0x", "0x123456789", "0xyz", strings.Repeat("z", 100)} {
		_, err := perftest.ParsePayload(text)
		require.ErrorContains(t, err, "write 0xaaaaaaaa,0xbbbbbbbb,...", text)
		require.Less(t, len(err.Error()), 120)
	}
}

// TestOpen checks that the device is opened when the peer is known, and closed at the end.
func TestOpen(t *testing.T) {
	o := defaults("send_bw")
	var opened []verbs.Device
	o.Open = func(at netip.AddrPort) (verbs.Device, error) {
		require.False(t, at.IsValid(), "the peer is on this machine")
		dev, err := rnic.Open(rnic.Options{})
		opened = append(opened, dev)
		return dev, err
	}
	c := o
	c.Open = func(netip.AddrPort) (verbs.Device, error) { return rnic.Open(rnic.Options{}) }
	server, client := runBoth(t, o, c)
	require.NoError(t, server.err)
	require.NoError(t, client.err)
	require.Len(t, opened, 1)
	_, err := opened[0].AllocPD()
	require.ErrorIs(t, err, verbs.ErrClosed)
}
