// Package payload is what experiments send, so that a receiver can say whether
// all of it has arrived, in its place:
//
//	want := payload.New(size)
//	copy(source, want)
//	... // send it
//	err := want.Check(received, false) // "wrong answer: byte 17 of 100 is ..."
package payload
