//go:build unix

package detector

import (
	"os"
	"os/signal"
	"syscall"
)

// reportSignals returns a channel that receives the signal of the given name, nil if name is
// empty.
func reportSignals(name string) chan os.Signal {
	s := syscall.SIGUSR1
	switch name {
	case "":
		return nil
	case "USR2":
		s = syscall.SIGUSR2
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, s)
	return c
}
