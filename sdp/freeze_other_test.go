//go:build !unix

package sdp_test

import "os"

var freeze func(*os.Process) error
