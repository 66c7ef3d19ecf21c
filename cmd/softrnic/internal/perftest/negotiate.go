package perftest

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/verbs"
)

// Version is the perftest whose handshake this is. Newer ones speak it with
// peers that announce it.
const Version = "6.06"

// versionLen is the length of an encoded version, padded with NULs.
const versionLen = 16

// oldest is the first version with this handshake.
const oldest = 5.70

// longSince is the first version with long binary keys, independent of its peer's version.
const longSince = 6.29

// ErrVersion reports a peer that is too old.
var ErrVersion = errors.New("perftest of the peer is older than 5.70")

var versionRE = regexp.MustCompile(`^(\d{1,4}\.\d{1,4})\x00(softrnic)?\x00*$`)

// termsMark follows the NUL of a version. It announces that the sender exchanges oob.Params next
// with a peer that announces it too. An original reads up to the NUL.
const termsMark = "softrnic"

// encodeVersion returns the versionLen bytes of this program's version.
func (t *handshake) encodeVersion() []byte {
	b := make([]byte, versionLen)
	n := copy(b, Version)
	if t.params != nil {
		copy(b[n+1:], termsMark)
	}
	return b
}

// hasTerms reports whether the sender of a version exchanges parameters.
func hasTerms(version []byte) bool {
	return bytes.Contains(version, []byte("\x00"+termsMark))
}

// parseVersion checks the 16 bytes of a peer's version.
func parseVersion(b []byte) (string, error) {
	m := versionRE.FindSubmatch(append(bytes.Clone(b), 0))
	if m == nil {
		return "", protocolErrorf("%q is not a version of perftest", b)
	}
	v, err := strconv.ParseFloat(string(m[1]), 64)
	if err == nil && v < oldest {
		err = fmt.Errorf("%w: version %s; start a newer one there", ErrVersion, m[1])
	}
	return string(m[1]), err
}

// readHello reads a client's first message.
func (r *runner) readHello(c clientChannel) ([]byte, error) {
	if c, ok := c.(*cmChannel); ok {
		if err := c.acceptClient(); err != nil {
			return nil, err
		}
	}
	doing, n := "read its version", versionLen
	if r.NoVersions {
		doing, n = "read its address", (&handshake{channel: c}).keysLen()
	}
	first := make([]byte, n)
	if err := c.read(first, doing); err != nil {
		return nil, err
	}
	if r.NoVersions { // exchangeKeys parses it later
		return first, nil
	}
	if _, err := parseVersion(first); err != nil {
		return nil, &oob.PeerError{Peer: c.PeerName(), Op: doing, Err: err}
	}
	return first, nil
}

// setFirstMessage makes first, which has been read, the result of the next readMessage.
func (t *handshake) setFirstMessage(first []byte) {
	t.pending = &pendingRead{b: first, done: make(chan struct{})}
	close(t.pending.done)
}

// negotiated has the results of the negotiation.
type negotiated struct {
	version       string
	cycleBuffer   int // bytes that small messages are spread over; the larger page of both
	cacheLineSize int // bytes of a cache line; the larger of both
	mtu           verbs.MTU
}

// Sizes of this side, and the limits for a peer's.
const (
	pageSize     = 4096
	cacheLine    = 64
	maxCycle     = 1 << 21
	maxCacheLine = 4096
)

// negotiate exchanges versions, parameters, sizes and the MTU, or with skip returns this side's.
func (t *handshake) negotiate(mtu verbs.MTU, skip bool) (a negotiated, err error) {
	a = negotiated{Version, pageSize, cacheLine, mtu}
	if skip {
		return a, nil
	}
	const doing = "exchange versions"
	theirs := make([]byte, versionLen)
	if err := t.exchange(t.encodeVersion(), theirs, doing); err != nil {
		return a, err
	}
	if a.version, err = parseVersion(theirs); err != nil {
		return a, t.peerError(doing, err)
	}
	if t.params != nil && hasTerms(theirs) {
		if err := t.exchangeParams(); err != nil {
			return a, err
		}
	}
	if v, _ := strconv.ParseFloat(a.version, 64); v >= longSince {
		t.longKeys = true
	}
	cycle, err := t.exchangeInt32(pageSize, "exchange page sizes")
	if err != nil {
		return a, err
	}
	line, err := t.exchangeInt32(cacheLine, "exchange cache line sizes")
	if err != nil {
		return a, err
	}
	a.cycleBuffer, a.cacheLineSize = max(cycle, pageSize), max(line, cacheLine)
	if a.cycleBuffer > maxCycle || a.cacheLineSize > maxCacheLine || a.cacheLineSize > a.cycleBuffer {
		return a, t.peerError("exchange page sizes", protocolErrorf("invalid sizes: pages of %d bytes, cache lines of %d", cycle, line))
	}
	digit := []byte{'0' + byte(mtu), 0}
	their := make([]byte, len(digit))
	if err := t.exchange(digit, their, "exchange MTUs"); err != nil {
		return a, err
	}
	theirMTU := verbs.MTU(their[0] - '0')
	if theirMTU.Bytes() == 0 || their[1] != 0 {
		return a, t.peerError("exchange MTUs", protocolErrorf("MTU code %q: want 1 to 5", their))
	}
	a.mtu = min(mtu, theirMTU)
	return a, nil
}

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
