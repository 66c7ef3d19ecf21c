package mad_test

import (
	"fmt"

	"github.com/softrnic/softrnic/wire/mad"
)

// A listener's REJ, encoded and decoded.
func Example() {
	var b [mad.Size]byte
	mad.Put(&b, mad.Header{TID: 7, Attr: mad.AttrREJ}, &mad.REJ{RemoteID: 0x1234, Reason: mad.RejInvalidServiceID})

	h, body, drop := mad.Parse(b[:])
	if drop != mad.DropNone {
		fmt.Println(drop)
		return
	}
	r := *body.(*mad.REJ)
	fmt.Printf("%v of %#x: %v, %s\n", h.Attr, r.RemoteID, r.Reason, r.Reason.Description())
	// Output: REJ of 0x1234: invalid service id, the peer does not listen on this port
}
