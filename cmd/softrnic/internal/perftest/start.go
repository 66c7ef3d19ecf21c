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

// versionLen is the length of a version on the way, padded with NULs.
const versionLen = 16

// oldest is the first version whose handshake this is.
const oldest = 5.70

// longSince is the first version whose binary keys are long, whatever the
// version of its peer.
const longSince = 6.29

// ErrVersion says that the peer is too old.
var ErrVersion = errors.New("its perftest is older than 5.70")

var versionRE = regexp.MustCompile(`^(\d{1,4}\.\d{1,4})\x00(softrnic)?\x00*$`)

// termsMark follows the NUL of a version and says that the sender exchanges
// oob.Terms next, with a peer that says so, too. An original reads up to the NUL.
const termsMark = "softrnic"

// encodeVersion returns the versionLen bytes of our version.
func (t *talk) encodeVersion() []byte {
	b := make([]byte, versionLen)
	n := copy(b, Version)
	if t.terms != nil {
		copy(b[n+1:], termsMark)
	}
	return b
}

// hasTerms reports whether the sender of a version exchanges terms.
func hasTerms(version []byte) bool {
	return bytes.Contains(version, []byte("\x00"+termsMark))
}

// parseVersion checks the 16 bytes of a peer's version.
func parseVersion(b []byte) (string, error) {
	m := versionRE.FindSubmatch(append(bytes.Clone(b), 0))
	if m == nil {
		return "", nonsense("%q is no version of perftest", b)
	}
	v, err := strconv.ParseFloat(string(m[1]), 64)
	if err == nil && v < oldest {
		err = fmt.Errorf("%w: it is %s; start a newer one there", ErrVersion, m[1])
	}
	return string(m[1]), err
}

// hello reads a client's first message.
func (r *runner) hello(c visitor) ([]byte, error) {
	if c, ok := c.(*rdma); ok {
		if err := c.accept(); err != nil {
			return nil, err
		}
	}
	doing, n := "read its version", versionLen
	if r.NoVersions {
		doing, n = "read its address", (&talk{channel: c}).keysLen()
	}
	first := make([]byte, n)
	if err := c.read(first, doing); err != nil {
		return nil, err
	}
	if r.NoVersions { // what it says is looked at in its turn
		return first, nil
	}
	if _, err := parseVersion(first); err != nil {
		return nil, &oob.PeerError{Peer: c.PeerName(), Doing: doing, Err: err}
	}
	return first, nil
}

// said makes the peer's first message, which has been read, the next one to
// hear.
func (t *talk) said(first []byte) {
	t.pending = &ahead{b: first, done: make(chan struct{})}
	close(t.pending.done)
}

// agreed is what the start of the handshake settles.
type agreed struct {
	version string
	cycle   int // bytes that small messages are spread over; the larger page of both
	line    int // bytes of a cache line; the larger of both
	mtu     verbs.MTU
}

// Sizes of memory that a peer may ask for.
const (
	pageSize     = 4096
	cacheLine    = 64
	maxCycle     = 1 << 21
	maxCacheLine = 4096
)

// start exchanges versions and sizes. mtu is ours.
func (t *talk) start(mtu verbs.MTU, skip bool) (a agreed, err error) {
	a = agreed{Version, pageSize, cacheLine, mtu}
	if skip {
		return a, nil
	}
	const doing = "exchange versions"
	theirs := make([]byte, versionLen)
	if err := t.exchange(t.encodeVersion(), theirs, doing); err != nil {
		return a, err
	}
	if a.version, err = parseVersion(theirs); err != nil {
		return a, t.fail(doing, err)
	}
	if t.terms != nil && hasTerms(theirs) {
		if err := t.exchangeTerms(); err != nil {
			return a, err
		}
	}
	if v, _ := strconv.ParseFloat(a.version, 64); v >= longSince {
		t.long = true
	}
	cycle, err := t.int32(pageSize, "exchange page sizes")
	if err != nil {
		return a, err
	}
	line, err := t.int32(cacheLine, "exchange cache line sizes")
	if err != nil {
		return a, err
	}
	a.cycle, a.line = max(cycle, pageSize), max(line, cacheLine)
	if a.cycle > maxCycle || a.line > maxCacheLine || a.line > a.cycle {
		return a, t.fail("exchange page sizes", nonsense("pages of %d bytes and cache lines of %d cannot be", cycle, line))
	}
	digit := []byte{'0' + byte(mtu), 0}
	their := make([]byte, len(digit))
	if err := t.exchange(digit, their, "exchange MTUs"); err != nil {
		return a, err
	}
	theirMTU := verbs.MTU(their[0] - '0')
	if theirMTU.Bytes() == 0 || their[1] != 0 {
		return a, t.fail("exchange MTUs", nonsense("%q is none of 1 to 5", their))
	}
	a.mtu = min(mtu, theirMTU)
	return a, nil
}
