package link

import "syscall"

// countLost counts packets that the system refused. (On Windows, whose sockets have
// error numbers of their own, most count as SendFailed.)
func (tx *sendCounters) countLost(errno syscall.Errno, packets int) {
	n := uint64(packets)
	switch errno {
	case syscall.EMSGSIZE:
		tx.tooBig.Add(n)
	case syscall.ENOBUFS, syscall.ENOMEM, syscall.EAGAIN: // EAGAIN: maxBlocked is over
		tx.noBuffers.Add(n)
	case syscall.EPERM, syscall.EACCES:
		tx.denied.Add(n)
	case syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN,
		syscall.EAFNOSUPPORT, syscall.EADDRNOTAVAIL:
		tx.unreachable.Add(n)
	default:
		tx.other.Add(n)
	}
}
