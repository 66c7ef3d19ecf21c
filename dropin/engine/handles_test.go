package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A recorder is an object that cannot be closed before another.
type recorder struct {
	user   *recorder
	closed bool
}

// Close implements io.Closer.
func (r *recorder) Close() error {
	if r.user != nil && !r.user.closed {
		return errors.New("used")
	}
	r.closed = true
	return nil
}

// TestHandleRemovedOnce checks that an index is free once when two threads destroy an object.
func TestHandleRemovedOnce(t *testing.T) {
	var table handleTable
	handle := table.add(new(recorder), nil)
	require.True(t, table.remove(handle))
	require.False(t, table.remove(handle))
	require.Len(t, table.free, 1)
}

// TestAddObjectFull checks that an object without a handle is closed.
func TestAddObjectFull(t *testing.T) {
	next := objects.next
	objects.next = 1<<indexBits - 1
	defer func() { objects.next = next }()
	r := new(recorder)
	handle := objects.add(r, nil)
	require.Zero(t, handle, "the table is full")
	require.NotZero(t, addObject(nil, r, &handle))
	require.True(t, r.closed)
}

// TestCloseObjects checks that the objects of a context are closed after those that use them, and others are not.
func TestCloseObjects(t *testing.T) {
	context := new(deviceContext)
	queue := new(recorder)
	domain := &recorder{user: queue}
	other := new(recorder)
	first, second := objects.add(domain, context), objects.add(queue, context)
	kept := objects.add(other, new(deviceContext))
	closeObjects(context)
	require.True(t, domain.closed && queue.closed)
	require.False(t, other.closed)
	require.Nil(t, objects.find(first))
	require.Nil(t, objects.find(second))
	require.True(t, objects.remove(kept))
}
