package rping

import "fmt"

// Characters of the data, used cyclically.
const (
	firstChar = 'A'
	chars     = 'z' - 'A' + 1
)

// fillPing writes the data of a ping: its number, then characters that start one later with each
// ping, and a NUL.
func fillPing(b []byte, ping int) {
	head := copy(b, fmt.Sprintf("rdma-ping-%d: ", ping))
	for i := range b[head:] {
		b[head+i] = byte(firstChar + (ping+i)%chars)
	}
	b[len(b)-1] = 0
}

// A DataError reports a ping with unexpected data.
type DataError struct {
	Ping      int
	Offset    int // of the first wrong byte
	Got, Want byte
}

func (d *DataError) Error() string {
	return fmt.Sprintf("data mismatch! ping %d: byte %d is %#02x and should be %#02x", d.Ping, d.Offset, d.Got, d.Want)
}

// comparePing compares the data of a ping.
func comparePing(ping int, got, want []byte) error {
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			e := &DataError{Ping: ping, Offset: i, Want: want[i]}
			if i < len(got) {
				e.Got = got[i]
			}
			return e
		}
	}
	return nil
}
