package bsdh_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/bsdh"
)

// A source advertises a mebibyte with its first bytes inline; the sink reads these, and the range
// to fetch by RDMA READ.
func Example() {
	inline := "the first bytes"
	h := bsdh.Header{MID: bsdh.MIDSrcAvail, Bufs: 8, Seq: 7, Ack: 5}
	h.Len = uint32(bsdh.HeaderBytes + h.MID.Extended() + len(inline))
	b := h.Append(nil)
	b = bsdh.SrcAvail{Len: 1 << 20, RKey: 0x1234, Addr: 0x10000}.Append(b)
	b = append(b, inline...)

	h, err := bsdh.ParseHeader(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	avail, err := bsdh.ParseExtended[bsdh.SrcAvail](b[bsdh.HeaderBytes:])
	if err != nil {
		fmt.Println(err)
		return
	}
	got := uint32(len(h.Payload(b)))
	fmt.Printf("%v %d: %q, and %d bytes from %#x on\n", h.MID, h.Seq, h.Payload(b), avail.Len-got, avail.Addr+uint64(got))
	// Output: SrcAvail 7: "the first bytes", and 1048561 bytes from 0x1000f on
}
