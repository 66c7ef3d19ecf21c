// Package moment has a context that waiting for costs nothing, again and again:
// one that is made once and kept by who waits, where a context.WithCancel for
// each wait would be memory and work for each.
//
//	m := cancelctx.New(os.ErrDeadlineExceeded)
//	timer := time.AfterFunc(d, m.End)
//	n, err := cq.PollWait(m, wcs) // as often as it takes
//
// context.AfterFunc on it needs no goroutine.
package cancelctx
