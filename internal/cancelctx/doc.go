// Package cancelctx provides a context that is allocated once and canceled
// once. A waiter keeps it and passes it to any number of waits, where
// context.WithCancel would allocate for each.
//
//	c := cancelctx.New(os.ErrDeadlineExceeded)
//	timer := time.AfterFunc(d, c.Cancel)
//	n, err := cq.PollWait(c, wcs) // any number of times
//
// context.AfterFunc on it starts no goroutine before it is canceled.
package cancelctx
