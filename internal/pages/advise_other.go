//go:build unix && !linux && !race

package pages

func advise([]byte) {}
