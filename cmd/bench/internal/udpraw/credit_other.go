//go:build !linux

package udpraw

import "errors"

var errNoSharedWindow = errors.New("udpraw: shared-memory credits exist on Linux only")

func newWindowFile() (string, error)               { return "", errNoSharedWindow }
func openSharedWindow(path string) (window, error) { return nil, errNoSharedWindow }
