// Package epoll waits for descriptors in a blocking system call, outside Go's
// netpoller: the call wakes a goroutine in about half the time, and events for which
// nobody waits wake no thread. It is for Linux only; elsewhere the package is empty.
//
//	s, err := epoll.Open()
//	err = s.Add(fd, unix.EPOLLIN, 7)
//	n, woken, err := s.Wait(events, false)   // events[i].Fd is 7; until Wake at the latest
package epoll
