//go:build !unix

package endpoint

import "io/fs"

// ownedByUser and modePrivate leave it to the system: where it has no modes
// (Windows), the temporary directory is the user's own.

func ownedByUser(fs.FileInfo) bool { return true }

func modePrivate(fs.FileInfo) bool { return true }
