//go:build !linux

package shm

import "github.com/softrnic/softrnic/internal/link"

// Wrap returns inner: rings are for Linux only.
func Wrap(inner []link.Conn, slot int, slotOf func(qpn uint32) int) []link.Conn { return inner }
