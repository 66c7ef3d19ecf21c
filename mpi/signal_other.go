//go:build !unix

package mpi

import "os"

// reportSignals is nil: there are none.
func reportSignals(string) chan os.Signal { return nil }
