// Package fifo has the queue of the cores and protocols: first in, first out, in a
// ring that grows as it must and is given back after a burst.
//
//	var waiting fifo.Queue[*request]
//	waiting.Push(r)
//	for waiting.Len() > 0 && send(*waiting.Front()) {
//		waiting.Pop()
//	}
package fifo
