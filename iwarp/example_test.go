package iwarp_test

import (
	"fmt"

	"github.com/softrnic/softrnic/iwarp"
)

// The two ends of a connection agree on its properties.
func Example() {
	request := iwarp.NewRequest(16, 16, true, []byte("hello"))
	received, _, err := iwarp.ParseHandshake(request.AppendTo(nil), false)
	fmt.Printf("%s %v\n", received.Private, err)
	reply, responder, err := iwarp.AnswerRequest(&received, 4, 4, true, nil)
	fmt.Println(responder.ORD, responder.CRC, err)
	initiator, err := iwarp.FinishRequest(&request, &reply)
	fmt.Println(initiator.ORD, initiator.RTR, err)
	// Output:
	// hello <nil>
	// 4 true <nil>
	// 4 true <nil>
}

// A segment is sent in an FPDU, with its length, padding and CRC.
func ExampleHeader() {
	h := iwarp.Header{Opcode: iwarp.OpSend, Last: true, MSN: 1}
	segment := h.Len() + len("ping!")
	b := make([]byte, iwarp.FPDULen(segment))
	b[1] = byte(segment)
	h.Put(b[iwarp.LengthLen:])
	copy(b[iwarp.LengthLen+h.Len():], "ping!")
	end := len(b) - iwarp.CRCLen
	iwarp.PutCRC(b[end:], iwarp.AddCRC(0, b[:end]))
	fmt.Printf("%x\n", b[:20])
	// Output: 0017414300000000000000000000000100000000
}
