package pingpong

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
	"github.com/softrnic/softrnic/verbs"
)

// doneMessage is the client's last message of the handshake.
const doneMessage = "done\x00"

// recordCount returns the number of records that each side sends.
func (k Kind) recordCount() int {
	if k == SRQ {
		return maxRecords
	}
	return 1
}

// writeRecords sends the records of the local queue pairs, padded with empty ones. Each record
// leaves with its own write, because the originals of other kinds read one record by one read.
func writeRecords(c *oob.Conn, n int, local []Record) error {
	b := make([]byte, 0, n*RecordLen)
	for i := range n {
		var r Record
		if i < len(local) {
			r = local[i]
		}
		b = r.Append(b)
	}
	return c.Write(b, "send our address")
}

// restTimeout is the time between a peer's first record and the others, which it sends at once. A
// peer that stays silent has one record only.
const restTimeout = 1500 * time.Millisecond

// errQueuePairs reports a peer with another number of queue pairs. A peer of this project reports
// the difference in its parameters.
var errQueuePairs = errors.New("give both sides the same -q")

// readRecords reads the peer's records and returns the first n. The error wraps oob.ErrParams if
// the peer apparently runs a kind with another number of records, and errQueuePairs if it runs the
// same kind with another number of queue pairs.
func readRecords(c *oob.Conn, o *Options) ([]Record, error) {
	const doing = "read its address"
	b := make([]byte, o.Kind.recordCount()*RecordLen)
	// The first record alone, and its beginning first, so that invalid bytes are
	// detected before the read waits for all records.
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

// describeProgram returns a guess of the client's program from the beginning of its first message.
func describeProgram(b []byte) string {
	if b[0] >= '0' && b[0] <= '9' && b[1] == '.' && b[len(b)-1] == 0 {
		return "; it runs perftest or softrnic perf"
	}
	return ""
}

// readRemainingRecords reads the records after the first. A peer of another kind sends none; a
// server of this project sends its parameters instead.
func readRemainingRecords(c *oob.Conn, o *Options, b []byte, doing string) error {
	c.SetTimeout(min(o.HandshakeTimeout, restTimeout))
	defer c.SetTimeout(o.HandshakeTimeout)
	err := c.Read(b, doing)
	switch {
	case err == nil:
		return nil
	case b[0] == 0: // nothing has come
		return fmt.Errorf("%w: kind is %s here and rc, uc or ud at the peer, which sends one queue pair (%w)", oob.ErrParams, o.Kind, err)
	}
	if theirs, notTerms := oob.ParseParams(b[:oob.ParamsLen]); notTerms == nil {
		return o.params().Check(theirs)
	}
	return err
}

// readDone reads the client's last message of the handshake.
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
		return fmt.Errorf("%w: kind is %s here and srq at the peer, which sends several queue pairs", oob.ErrParams, o.Kind)
	}
	return oob.ProtocolErrorf(c.Peer(), doing, "%q", b)
}

// params returns the parameters that must be equal at both ends.
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

// paramsTimeout is the time for the peer's parameters. An original closes the connection after
// "done" instead.
const paramsTimeout = 2 * time.Second

// exchangeParams exchanges the parameters of the test, the server's first, and fails if they
// differ. It reports whether the peer has sent any; an original does not.
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

// countQueuePairs returns the number of records with a queue pair.
func countQueuePairs(list []Record) (n int) {
	for _, r := range list {
		if r.QPN != 0 {
			n++
		}
	}
	return n
}

// checkRecords rejects records that cannot be connected to.
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

// RecordLen is the length of a record, its NUL included.
const RecordLen = len("0000:000000:000000:00000000000000000000000000000000") + 1

// A Record describes a queue pair to the peer. Its text is LID, QPN, PSN and GID in hexadecimal
// digits of fixed width, separated by colons and followed by a NUL
// (0000:000011:f6c11c:00000000000000000000ffffc6336402).
type Record struct {
	LID uint16
	QPN uint32 // 24 bits
	PSN uint32 // the first that this side sends, 24 bits
	GID verbs.GID
}

// Append appends the RecordLen bytes of the record to b.
func (r Record) Append(b []byte) []byte {
	return fmt.Appendf(b, "%04x:%06x:%06x:%x\x00", r.LID, r.QPN, r.PSN, r.GID[:])
}

// errRecordSyntax reports bytes that are no record.
var errRecordSyntax = errors.New("want LID:QPN:PSN:GID in 4, 6, 6 and 32 hexadecimal digits and a NUL")

// ParseRecord parses RecordLen bytes.
func ParseRecord(b []byte) (Record, error) {
	if len(b) != RecordLen || b[4] != ':' || b[11] != ':' || b[18] != ':' || b[RecordLen-1] != 0 {
		return Record{}, errRecordSyntax
	}
	var r Record
	if n, err := hex.Decode(r.GID[:], b[19:RecordLen-1]); err != nil || n != len(r.GID) {
		return Record{}, errRecordSyntax
	}
	lid, err1 := parseHex(b[:4])
	qpn, err2 := parseHex(b[5:11])
	psn, err3 := parseHex(b[12:18])
	if err1 != nil || err2 != nil || err3 != nil {
		return Record{}, errRecordSyntax
	}
	r.LID, r.QPN, r.PSN = uint16(lid), qpn, psn
	return r, nil
}

func parseHex(b []byte) (uint32, error) {
	for _, c := range b {
		if c == '+' || c == '-' || c == '_' {
			return 0, errRecordSyntax
		}
	}
	n, err := strconv.ParseUint(string(b), 16, 32)
	return uint32(n), err
}

// formatLine returns the originals' line of a record. The local line of ud has a colon in place of
// the comma.
func (r Record) formatLine(which string, colon bool) string {
	separator := ","
	if colon {
		separator = ":"
	}
	return fmt.Sprintf("  %-15s LID 0x%04x, QPN 0x%06x, PSN 0x%06x%s GID %s\n", which+" address:", r.LID, r.QPN, r.PSN, separator, gidText(r.GID))
}
