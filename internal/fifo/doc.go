// Package fifo implements a first-in, first-out queue in a ring that grows on
// demand and is released after a burst.
//
//	var waiting fifo.Queue[*request]
//	waiting.Push(r)
//	for waiting.Len() > 0 && send(*waiting.Front()) {
//		waiting.Pop()
//	}
package fifo
