//go:build !unix

package detector

import "os"

// reportSignals returns nil: the system has no user signals.
func reportSignals(string) chan os.Signal { return nil }
