package pingpong

import "fmt"

// page is what the originals mark messages by: with Check, the first byte of
// each is its number modulo sizeof(char), which is 0.
const page = 4096

// payload is the memory that messages leave from and arrive in.
func (e *endpoint) payload() []byte { return e.mr.Bytes()[e.headerLen:] }

// wantByte is byte i of the messages.
func (e *endpoint) wantByte(i int) byte {
	if e.Check && i%page == 0 || e.Kind == SRQ {
		return 0
	}
	return fillByte
}

// fillMessage writes the message. A server that is going to check starts with the
// opposite, so that what it finds at the end has come from the client.
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

// DataError says that a message was not what was sent.
type DataError struct {
	Page      int // of the first wrong byte
	Offset    int // of it in the message
	Got, Want byte
}

func (d *DataError) Error() string {
	return fmt.Sprintf("invalid data in page %d: byte %d is %#02x and should be %#02x", d.Page, d.Offset, d.Got, d.Want)
}

// checkMessage compares the last message with what should have come.
func (e *endpoint) checkMessage(message []byte) error {
	for i, got := range message {
		if want := e.wantByte(i); got != want {
			return &DataError{i / page, i, got, want}
		}
	}
	return nil
}
