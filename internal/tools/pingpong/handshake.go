package pingpong

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/tools/oob"
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
func writeRecords(c *oob.Conn, k Kind, local []Record) error {
	b := make([]byte, 0, k.records()*RecordLen)
	for i := range k.records() {
		var r Record
		if i < len(local) {
			r = local[i]
		}
		b = r.Append(b)
	}
	return c.Write(b, "tell our address")
}

// readRecords hears of the peer's n queue pairs.
func readRecords(c *oob.Conn, k Kind, n int) ([]Record, error) {
	const doing = "read its address"
	b := make([]byte, k.records()*RecordLen)
	// The first record alone, so that nonsense shows before much is waited for.
	if err := c.Read(b[:RecordLen], doing); err != nil {
		return nil, err
	}
	list := make([]Record, k.records())
	for i := range list {
		if i == 1 {
			if err := c.Read(b[RecordLen:], doing); err != nil {
				return nil, err
			}
		}
		var err error
		text := b[i*RecordLen : (i+1)*RecordLen]
		if list[i], err = ParseRecord(text); err != nil {
			return nil, oob.Nonsense(c.Peer(), doing, "%q: %v", text, err)
		}
	}
	if err := checkRecords(list, n); err != nil {
		return nil, oob.Nonsense(c.Peer(), doing, "%v", err)
	}
	return list[:n], nil
}

// checkRecords refuses peers that we cannot connect to.
func checkRecords(list []Record, n int) error {
	theirs := 0
	for _, r := range list {
		if r.QPN != 0 {
			theirs++
		}
	}
	switch {
	case theirs != n && len(list) > 1:
		return fmt.Errorf("it has %d queue pairs and we have %d; give both sides the same -q", theirs, n)
	case theirs != n:
		return fmt.Errorf("it names no queue pair")
	}
	for _, r := range list[:n] {
		if [8]byte(r.GID[8:]) == [8]byte{} {
			return fmt.Errorf("it names no GID, without which RoCE cannot reach it; start it with -g and the index of a RoCE v2 GID (ibv_devinfo -v lists them)")
		}
		if r.QPN == 0 {
			return fmt.Errorf("its queue pairs have gaps")
		}
	}
	return nil
}
