// Package faulttest has code of a program that panics, for tests that no call leaves a lock or a
// waiter behind.
//
//	err := faulttest.Recover(func() error { return op.Wait(faulttest.Context{Context: ctx}) })
//	require.ErrorIs(t, err, faulttest.ErrPanic)
package faulttest

import (
	"context"
	"errors"
)

// ErrPanic is the value of the panics.
var ErrPanic = errors.New("boom")

// Context is a program's context whose Done panics.
type Context struct{ context.Context }

// Done implements context.Context.
func (Context) Done() <-chan struct{} { panic(ErrPanic) }

// Recover calls f and returns its error, or the value of its panic.
func Recover(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = v.(error)
		}
	}()
	return f()
}
