//go:build !windows

package link

import "syscall"

const (
	errAddrInUse    = syscall.EADDRINUSE
	errAddrNotAvail = syscall.EADDRNOTAVAIL
	errNoFamily     = syscall.EAFNOSUPPORT
)
