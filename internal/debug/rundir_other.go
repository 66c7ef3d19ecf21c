//go:build !unix

package debug

import "io/fs"

// ownedByUser and modePrivate return true: on systems without modes (Windows),
// the temporary directory is the user's own.

func ownedByUser(fs.FileInfo) bool { return true }

func modePrivate(fs.FileInfo) bool { return true }

// hasEnded reports false: the system does not tell.
func hasEnded(int) bool { return false }
