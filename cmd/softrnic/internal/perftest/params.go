package perftest

import (
	"strconv"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
)

// testParams returns the parameters that must be equal at both ends. It omits options that only
// one end acts on, such as the number of messages of a test with a passive server.
func (p *plan) testParams() oob.Params {
	size := strconv.Itoa(p.Size)
	if p.All {
		size = "all (-a)"
	}
	var t oob.Params
	t.Add("test", p.Test.String())
	t.Add("-c", p.Connection.String())
	t.Add("-s", size)
	t.Add("-q", strconv.Itoa(p.QPs))
	if p.consumesReceives() || p.Bidirectional || p.Test == (Test{Write, Latency}) { // both ends count
		if p.timed {
			t.Add("-D", p.Duration.String())
		} else {
			t.Add("-n", strconv.Itoa(p.Iters))
		}
	}
	for _, o := range []struct {
		option string
		on     bool
	}{
		{"-R", p.RDMACM}, {"-b", p.Bidirectional}, {"--reversed", p.Reversed}, {"--run_infinitely", p.Infinite},
		{"--send_with_imm, --write_with_imm", p.WithImm}, {"--data_validation", p.Validate}, {"--report_gbits", p.Gbits},
	} {
		if o.on {
			t.Add(o.option, "on")
		}
	}
	if p.Validate && p.Test.Verb == Atomic {
		t.Add("-A", string(p.Atomic))
	}
	return t
}

// exchangeParams exchanges the parameters of the test and fails if they differ.
func (t *handshake) exchangeParams() error {
	const doing = "exchange the parameters of the test"
	theirs := make([]byte, oob.ParamsLen)
	if err := t.exchange(t.params.Encode(), theirs, doing); err != nil {
		return err
	}
	peer, err := oob.ParseParams(theirs)
	if err != nil {
		return t.peerError(doing, protocolErrorf("%v", err))
	}
	return t.params.Check(peer)
}
