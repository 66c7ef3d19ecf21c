package pingpong

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
)

// doneMessage is the client's last word in the handshake.
const doneMessage = "done\x00"

// recordCount is how many records go each way.
func (k Kind) recordCount() int {
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

// restTimeout is the time that a peer has for its second to last record once the
// first has come. All are sent at once, so a peer that stays silent has one only.
const restTimeout = 1500 * time.Millisecond

// errQueuePairs reports a peer with another number of queue pairs. One of this project
// tells the difference in its terms.
var errQueuePairs = errors.New("give both sides the same -q")

// readRecords reads the peer's records and returns the first n. If the peer runs a kind
// with another number of records, as far as can be told, the error wraps oob.ErrParams; if
// it runs the same kind with another number of queue pairs, errQueuePairs.
func readRecords(c *oob.Conn, o *Options) ([]Record, error) {
	const doing = "read its address"
	b := make([]byte, o.Kind.recordCount()*RecordLen)
	// The first record alone, and its beginning first, so that nonsense shows before
	// much is waited for.
	const lid = len("0000:")
	if err := c.Read(b[:lid], doing); err != nil {
		return nil, err
	}
	if b[lid-1] != ':' {
		return nil, oob.ProtocolErrorf(c.Peer(), doing, "%q...: %v%s", b[:lid], errRecordSyntax, describeProgram(b[:lid]))
	}
	if err := c.Read(b[lid:RecordLen], doing); err != nil {
		return nil, err
	}
	list := make([]Record, o.Kind.recordCount())
	for i := range list {
		if i == 1 {
			if err := readRemainingRecords(c, o, b[RecordLen:], doing); err != nil {
				return nil, err
			}
		}
		var err error
		text := b[i*RecordLen : (i+1)*RecordLen]
		if list[i], err = ParseRecord(text); err != nil {
			return nil, oob.ProtocolErrorf(c.Peer(), doing, "%q: %v", text, err)
		}
	}
	if theirs := countQueuePairs(list); theirs != o.NumQP && len(list) > 1 {
		return nil, fmt.Errorf("%w; %w", oob.ProtocolErrorf(c.Peer(), doing, "%d queue pairs, want %d", theirs, o.NumQP), errQueuePairs)
	}
	if err := checkRecords(list[:o.NumQP]); err != nil {
		return nil, oob.ProtocolErrorf(c.Peer(), doing, "%v", err)
	}
	return list[:o.NumQP], nil
}

// describeProgram returns what is known of a client by the beginning of its first message.
func describeProgram(b []byte) string {
	if b[0] >= '0' && b[0] <= '9' && b[1] == '.' && b[len(b)-1] == 0 {
		return "; it runs perftest or softrnic perf"
	}
	return ""
}

// readRemainingRecords reads the records behind the first. A peer of another kind has none; a server
// of this project tells its terms instead.
func readRemainingRecords(c *oob.Conn, o *Options, b []byte, doing string) error {
	c.SetTimeout(min(o.HandshakeTimeout, restTimeout))
	defer c.SetTimeout(o.HandshakeTimeout)
	err := c.Read(b, doing)
	switch {
	case err == nil:
		return nil
	case b[0] == 0: // nothing has come
		return fmt.Errorf("%w: kind is %s here and rc, uc or ud at the peer, which tells one queue pair (%w)", oob.ErrParams, o.Kind, err)
	}
	if theirs, notTerms := oob.ParseParams(b[:oob.ParamsLen]); notTerms == nil {
		return o.params().Check(theirs)
	}
	return err
}

// readDone reads the client's last word in the handshake.
func readDone(c *oob.Conn, o *Options) error {
	const doing = `read its "done"`
	b := make([]byte, len(doneMessage))
	if err := c.Read(b, doing); err != nil {
		return err
	}
	switch {
	case string(b) == doneMessage:
		return nil
	case b[4] == ':': // the beginning of another record
		return fmt.Errorf("%w: kind is %s here and srq at the peer, which tells many queue pairs", oob.ErrParams, o.Kind)
	}
	return oob.ProtocolErrorf(c.Peer(), doing, "%q", b)
}

// params returns the parameters that both ends must have alike.
func (o *Options) params() oob.Params {
	var t oob.Params
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

// paramsTimeout is the time that an end waits for the peer's terms. An original closes
// the connection behind "done" instead.
const paramsTimeout = 2 * time.Second

// exchangeParams exchanges the parameters of the test, the server's first, and refuses a
// peer with others. It reports whether the peer has terms at all: an original has none.
func exchangeParams(c *oob.Conn, o *Options) (exchanged bool, err error) {
	const doing = "exchange the parameters of the test"
	mine, theirs := o.params(), make([]byte, oob.ParamsLen)
	server := o.Server == ""
	if server && c.Write(mine.Encode(), doing) != nil {
		return false, nil // an original has closed the connection
	}
	c.SetTimeout(min(o.HandshakeTimeout, paramsTimeout))
	defer c.SetTimeout(o.HandshakeTimeout)
	if err := c.Read(theirs, doing); err != nil {
		if theirs[0] == 0 && (errors.Is(err, oob.ErrPeerClosed) || errors.Is(err, oob.ErrTimeout)) {
			err = nil
		}
		return false, err
	}
	if !server {
		if err := c.Write(mine.Encode(), doing); err != nil {
			return false, err
		}
	}
	peer, err := oob.ParseParams(theirs)
	if err != nil {
		return false, oob.ProtocolErrorf(c.Peer(), doing, "%v", err)
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
		return fmt.Errorf("peer sent no queue pair")
	}
	for _, r := range list {
		if [8]byte(r.GID[8:]) == [8]byte{} {
			return fmt.Errorf("peer sent no GID, which RoCE needs; start it with -g and the index of a RoCE v2 GID (ibv_devinfo -v lists them)")
		}
		if r.QPN == 0 {
			return fmt.Errorf("queue pairs of the peer have gaps")
		}
	}
	return nil
}
