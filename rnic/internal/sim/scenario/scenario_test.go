package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rnic/internal/sim/scenario"
)

func Example() {
	out, err := scenario.Run(`# A WRITE, and its acknowledgement.
device a
device b
connect rc a b psn.a=100
write a wr=1 len=10
run
trace
expect wc a wr=1 SUCCESS
----
`)
	fmt.Print(out, err)
	// Output:
	// # A WRITE, and its acknowledgement.
	// device a
	// device b
	// connect rc a b psn.a=100
	// write a wr=1 len=10
	// run
	// trace
	// expect wc a wr=1 SUCCESS
	// ----
	//      0.000 ms  a > b    RC_WRITE_ONLY           psn 100  at 0 len 10 key b  10 bytes  ackreq
	//      0.001 ms  b > a    RC_ACKNOWLEDGE          psn 100  ACK with 0 credits, msn 1
	//      0.002 ms  a        wc 1 on a: RDMA_WRITE, 10 bytes
	// <nil>
}

// TestErrors runs scripts that are invalid, or with expectations that fail.
func TestErrors(t *testing.T) {
	const start = "device a\ndevice b\nconnect rc a b psn=100\n"
	for script, want := range map[string]string{
		"jump\n----\n":                                                              "line 1: jump: unknown command jump",
		"device\n----\n":                                                            "a name is missing",
		"device a.1\n----\n":                                                        "not valid as the name",
		"device a colour=red\n----\n":                                               "option colour: not valid for this command",
		"device a b\n----\n":                                                        `"b": not valid for this command`,
		"device a\ndevice a\n----\n":                                                "not valid as the name",
		"connect rc a b\n----\n":                                                    "unknown device a",
		"connect rd a b\n----\n":                                                    "unknown type of connection",
		"device a\nrun 1h1\n----\n":                                                 ": want a time",
		"device a\nfault a lose\n----\n":                                            "unknown word",
		"device a":                                                                  "no ----",
		start + "connect rc a b\n----\n":                                            "exists already",
		start + "write c\n----\n":                                                   "unknown queue pair c",
		start + "write a len=x\n----\n":                                             ": want a number",
		start + "write a in=m\n----\n":                                              "unknown region m",
		start + "recv a in=m len=1\n----\n":                                         "unknown region m",
		start + "recv m len=1\n----\n":                                              "unknown queue pair or SRQ m",
		start + "recv a sge=1\n----\n":                                              "want an element",
		start + "local_inv a window=w\n----\n":                                      "unknown window w",
		start + "bind a window=w\n----\n":                                           "unknown window w",
		start + "inject a b RC_JUMP\n----\n":                                        "unknown opcode RC_JUMP",
		start + "modify a gone\n----\n":                                             ": want a state",
		start + "region m on=a access=x\n----\n":                                    ": unknown access flag",
		start + "expect rain\n----\n":                                               "cannot expect",
		start + "expect wc a wr=1 SUCCESS\n----\n":                                  "no completion",
		start + "expect state a ERR\n----\n":                                        "got RTS",
		start + "expect counters a sent_pkts=1\n---":                                "sent_pkts is 0",
		start + "expect counters a apples=1\n---":                                   "option apples: not valid",
		start + "expect drops a bad_icrc=1\n---":                                    "bad_icrc is 0",
		start + "expect copy a 0 b 0 8\n----\n":                                     "the memory differs",
		start + "expect word a 0 1\n----\n":                                         "got ",
		start + "expect event a SQ_DRAINED\n----\n":                                 "no event",
		start + "expect notified a\n----\n":                                         "fired: false",
		start + "write a wr=1\nrun\nexpect nothing a\n----\n":                       "unexpected completion",
		start + "write a wr=1\nrun\nexpect wc a wr=2 SUCCESS\n----\n":               "wr is 1",
		start + "write a wr=1\nrun\nexpect wc a wr=1 FATAL_ERR\n----\n":             "status is SUCCESS",
		start + "write a wr=1 len=1 remote=5\nrun\nexpect untouched b 0 10\n----\n": "byte 5 has changed",
		"device a\ndevice b\nconnect rc a b min_rnr=31\nsend a wr=1\nrun\n----\n":   "does not end",
	} {
		_, err := scenario.Run(script)
		require.Error(t, err, script)
		require.Contains(t, err.Error(), want, script)
	}
}

// TestOutputIsReplaced runs a script whose output differs.
func TestOutputIsReplaced(t *testing.T) {
	const script = "# a\ndevice a\n----\nnot so\nnor so\n\n# b\nrun 1ms\ntrace\n----\nok\n"
	got, err := scenario.Run(script)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(script, "not so\nnor so\n", "ok\n", 1), got)
	again, err := scenario.Run(got)
	require.NoError(t, err)
	require.Equal(t, got, again)
}
