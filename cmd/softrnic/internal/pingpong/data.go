package pingpong

import "fmt"

// page is the distance of the marks in a message: with Check the originals set the first byte of
// each page to its number modulo sizeof(char), which is 0.
const page = 4096

// payload returns the memory that messages are sent from and received in.
func (e *endpoint) payload() []byte { return e.mr.Bytes()[e.headerLen:] }

// wantByte returns the expected byte i of a message.
func (e *endpoint) wantByte(i int) byte {
	if e.Check && i%page == 0 || e.Kind == SRQ {
		return 0
	}
	return fillByte
}

// fillMessage writes the message. A server with Check inverts it, so that the expected content at
// the end must have come from the client.
func (e *endpoint) fillMessage() {
	flip := byte(0)
	if e.Check && e.Server == "" {
		flip = 0xff
	}
	m := e.payload()
	for i := range m {
		m[i] = e.wantByte(i) ^ flip
	}
}

// A DataError reports a message with unexpected content.
type DataError struct {
	Page      int // of the first wrong byte
	Offset    int // of it in the message
	Got, Want byte
}

func (d *DataError) Error() string {
	return fmt.Sprintf("invalid data in page %d: byte %d is %#02x and should be %#02x", d.Page, d.Offset, d.Got, d.Want)
}

// checkMessage compares the last message with the expected content.
func (e *endpoint) checkMessage(message []byte) error {
	for i, got := range message {
		if want := e.wantByte(i); got != want {
			return &DataError{i / page, i, got, want}
		}
	}
	return nil
}
