//go:build !linux

package udpraw

import "errors"

var errNoSharedCredits = errors.New("udpraw: shared-memory credits: Linux only")

func newCreditFile() (string, error)                       { return "", errNoSharedCredits }
func openSharedCredits(path string) (creditChannel, error) { return nil, errNoSharedCredits }
