package rping

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/softrnic/softrnic/cmd/softrnic/internal/oob"
)

// An Info is the message of rping: the address of a buffer.
type Info struct {
	Addr uint64
	RKey uint32
	Size uint32 // bytes
}

// InfoLen is the length of an Info as a message.
const InfoLen = 16

// Append appends the message in network byte order.
func (i Info) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, i.Addr)
	b = binary.BigEndian.AppendUint32(b, i.RKey)
	return binary.BigEndian.AppendUint32(b, i.Size)
}

// ParseInfo parses the result of Append.
func ParseInfo(b []byte) (Info, error) {
	if len(b) != InfoLen {
		return Info{}, fmt.Errorf("received bogus data, size %d: want %d bytes", len(b), InfoLen)
	}
	return Info{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])}, nil
}

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

// Error implements error.
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

// params returns the parameters of a client.
func (o *Options) params() oob.Params {
	var t oob.Params
	t.Add("test", "rping")
	t.Add("-S", strconv.Itoa(o.Size))
	if o.Count > 0 {
		t.Add("-C", strconv.Itoa(o.Count))
	}
	return t
}

// paramsFor returns the parameters that a server requires of a client with the parameters peer:
// the client's -S up to the server's, and the client's -C unless the server has one.
func (o *Options) paramsFor(peer oob.Params) oob.Params {
	want := *o
	want.Count = 0
	for _, term := range peer {
		n, _ := strconv.Atoi(term.Value)
		switch {
		case term.Option == "-S" && n <= o.Size:
			want.Size = n
		case term.Option == "-C":
			want.Count = n
		}
	}
	if o.Count > 0 {
		want.Count = o.Count
	}
	return want.params()
}
