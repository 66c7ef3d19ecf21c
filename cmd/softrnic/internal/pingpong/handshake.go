package pingpong

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
)

// done is the client's last word in the handshake.
const done = "done\x00"

// records is how many records go each way.
func (k Kind) records() int {
	if k == SRQ {
		return maxRecords
	}
	return 1
}

// writeRecords tells the peer of our queue pairs. The rest of srq's records are
// of none. They leave one by one, because the originals of other kinds read a
// record with one read.
func writeRecords(c *oob.Conn, n int, local []Record) error {
	b := make([]byte, 0, n*RecordLen)
	for i := range n {
		var r Record
		if i < len(local) {
			r = local[i]
		}
		b = r.Append(b)
	}
	return c.Write(b, "tell our address")
}

// restPatience is the time that a peer has for its second to last record once the
// first has come. All are sent at once, so a peer that stays silent has one only.
const restPatience = 1500 * time.Millisecond

// errQueuePairs reports a peer with another number of queue pairs. One of this project
// tells the difference in its terms.
var errQueuePairs = errors.New("give both sides the same -q")

// readRecords reads the peer's records and returns the first n. If the peer runs a kind
// with another number of records, as far as can be told, the error wraps oob.ErrTerms; if
// it runs the same kind with another number of queue pairs, errQueuePairs.
func readRecords(c *oob.Conn, o *Options) ([]Record, error) {
	const doing = "read its address"
	b := make([]byte, o.Kind.records()*RecordLen)
	// The first record alone, and its beginning first, so that nonsense shows before
	// much is waited for.
	const lid = len("0000:")
	if err := c.Read(b[:lid], doing); err != nil {
		return nil, err
	}
	if b[lid-1] != ':' {
		return nil, oob.Nonsense(c.Peer(), doing, "%q...: %v%s", b[:lid], errForm, otherProgram(b[:lid]))
	}
	if err := c.Read(b[lid:RecordLen], doing); err != nil {
		return nil, err
	}
	list := make([]Record, o.Kind.records())
	for i := range list {
		if i == 1 {
			if err := readRest(c, o, b[RecordLen:], doing); err != nil {
				return nil, err
			}
		}
		var err error
		text := b[i*RecordLen : (i+1)*RecordLen]
		if list[i], err = ParseRecord(text); err != nil {
			return nil, oob.Nonsense(c.Peer(), doing, "%q: %v", text, err)
		}
	}
	if theirs := countQueuePairs(list); theirs != o.NumQP && len(list) > 1 {
		return nil, fmt.Errorf("%w; %w", oob.Nonsense(c.Peer(), doing, "it has %d queue pairs and we have %d", theirs, o.NumQP), errQueuePairs)
	}
	if err := checkRecords(list[:o.NumQP]); err != nil {
		return nil, oob.Nonsense(c.Peer(), doing, "%v", err)
	}
	return list[:o.NumQP], nil
}

// otherProgram returns what is known of a client by the beginning of its first message.
func otherProgram(b []byte) string {
	if b[0] >= '0' && b[0] <= '9' && b[1] == '.' && b[len(b)-1] == 0 {
		return "; it runs perftest or softrnic perf"
	}
	return ""
}

// readRest reads the records behind the first. A peer of another kind has none; a server
// of this project tells its terms instead.
func readRest(c *oob.Conn, o *Options, b []byte, doing string) error {
	c.SetPatience(min(o.Patience, restPatience))
	defer c.SetPatience(o.Patience)
	err := c.Read(b, doing)
	switch {
	case err == nil:
		return nil
	case b[0] == 0: // nothing has come
		return fmt.Errorf("%w: kind is %s here and rc, uc or ud at the peer, which tells one queue pair (%w)", oob.ErrTerms, o.Kind, err)
	}
	if theirs, notTerms := oob.ParseTerms(b[:oob.TermsLen]); notTerms == nil {
		return o.terms().Check(theirs)
	}
	return err
}

// readDone reads the client's last word in the handshake.
func readDone(c *oob.Conn, o *Options) error {
	const doing = `read its "done"`
	b := make([]byte, len(done))
	if err := c.Read(b, doing); err != nil {
		return err
	}
	switch {
	case string(b) == done:
		return nil
	case b[4] == ':': // the beginning of another record
		return fmt.Errorf("%w: kind is %s here and srq at the peer, which tells many queue pairs", oob.ErrTerms, o.Kind)
	}
	return oob.Nonsense(c.Peer(), doing, "%q", b)
}

// terms returns the parameters that both ends must have alike.
func (o *Options) terms() oob.Terms {
	var t oob.Terms
	t.Add("kind", string(o.Kind))
	t.Add("-s", strconv.Itoa(o.Size))
	t.Add("-n", strconv.Itoa(o.Iters))
	if o.Kind != UD {
		t.Add("-m", strconv.Itoa(o.MTU.Bytes()))
	}
	if o.Kind == SRQ {
		t.Add("-q", strconv.Itoa(o.NumQP))
	}
	if o.Check {
		t.Add("-c", "on")
	}
	return t
}

// termsPatience is the time that an end waits for the peer's terms. An original closes
// the connection behind "done" instead.
const termsPatience = 2 * time.Second

// exchangeTerms exchanges the parameters of the test, the server's first, and refuses a
// peer with others. It reports whether the peer has terms at all: an original has none.
func exchangeTerms(c *oob.Conn, o *Options) (exchanged bool, err error) {
	const doing = "exchange the parameters of the test"
	mine, theirs := o.terms(), make([]byte, oob.TermsLen)
	server := o.Server == ""
	if server && c.Write(mine.Encode(), doing) != nil {
		return false, nil // an original has closed the connection
	}
	c.SetPatience(min(o.Patience, termsPatience))
	defer c.SetPatience(o.Patience)
	if err := c.Read(theirs, doing); err != nil {
		if theirs[0] == 0 && (errors.Is(err, oob.ErrGone) || errors.Is(err, oob.ErrSilent)) {
			err = nil
		}
		return false, err
	}
	if !server {
		if err := c.Write(mine.Encode(), doing); err != nil {
			return false, err
		}
	}
	peer, err := oob.ParseTerms(theirs)
	if err != nil {
		return false, oob.Nonsense(c.Peer(), doing, "%v", err)
	}
	return true, mine.Check(peer)
}

// countQueuePairs returns how many of the records are of a queue pair.
func countQueuePairs(list []Record) (n int) {
	for _, r := range list {
		if r.QPN != 0 {
			n++
		}
	}
	return n
}

// checkRecords refuses peers that we cannot connect to.
func checkRecords(list []Record) error {
	if countQueuePairs(list) == 0 {
		return fmt.Errorf("it names no queue pair")
	}
	for _, r := range list {
		if [8]byte(r.GID[8:]) == [8]byte{} {
			return fmt.Errorf("it names no GID, without which RoCE cannot reach it; start it with -g and the index of a RoCE v2 GID (ibv_devinfo -v lists them)")
		}
		if r.QPN == 0 {
			return fmt.Errorf("its queue pairs have gaps")
		}
	}
	return nil
}
