// Package payload generates the data that experiments send, and lets the receiver verify
// that each byte arrived at its offset:
//
//	want := payload.New(size)
//	copy(source, want)
//	... // send it
//	err := want.Check(received, false) // "wrong data: byte 17 of 100: ..."
package payload
